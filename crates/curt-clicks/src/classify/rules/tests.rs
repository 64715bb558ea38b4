use super::*;

/// A file with one rule in every section.
const SMALL: &str = "[class]\nhuman = person\n[bots]\nRobot = robot\n[browsers]\nOurs = ours/\n[systems]\nOS = os/\n[devices]\nmobile = phone\n[referrers]\nsearch = find.example\n";

fn changed(from: &str, to: &str) -> Result<ClickRules, RulesError> {
    assert!(SMALL.contains(from));
    ClickRules::parse(&SMALL.replace(from, to))
}

fn browser(rules: &str, agent: &str) -> String {
    let rules = changed("Ours = ours/", rules).unwrap();
    let agent = rules.read(format!("person {agent}").as_bytes());
    agent.browser.into_string()
}

#[test]
fn a_small_file_is_enough() {
    let rules = ClickRules::parse(SMALL).unwrap();
    let person = rules.read(b"A PERSON on OS/ with OURS/ by phone");
    assert_eq!((&*person.browser, &*person.system), ("Ours", "OS"));
    assert_eq!(person.device, Device::Mobile);
    let other = rules.read(b"robot with ours/ by phone");
    assert_eq!((&*other.browser, &*other.system), ("Robot", UNKNOWN));
    assert_eq!(other.device, Device::Bot);
    assert!(!rules.is_human(b"") && rules.is_human(b"person"));
}

#[test]
fn marks_are_combined_in_the_order_of_the_lines() {
    let rules = "First = one & two | three\nSecond = two & !four\nThird = ^\"person five\"\nFourth = \" six \" | se|ven";
    for (agent, expected) in [
        ("two one", "First"),
        ("THREE", "First"),
        ("two", "Second"),
        ("two four", UNKNOWN),
        ("five", "Third"),
        ("not person five", UNKNOWN),
        ("a six b", "Fourth"),
        ("asix", UNKNOWN),
        ("ven", "Fourth"),
    ] {
        assert_eq!(browser(rules, agent), expected, "{agent}");
    }
    // A mark within another one is found, too.
    assert_eq!(browser("A = xyz & yz & z/\nB = yz", "xyz/"), "A");
}

#[test]
fn wrong_files_are_refused_with_line_and_reason() {
    for (from, to, line, reason) in [
        ("human = person", "people = person", 2, "is no class"),
        ("mobile = phone", "bot = phone", 10, "is no device"),
        ("[systems]", "[oses]", 7, "is no section"),
        ("[systems]", "[browsers]", 7, "twice"),
        ("[class]\n", "", 1, "before the first"),
        ("Ours = ours/", "Ours ours/", 6, "expected NAME"),
        ("Ours = ours/", "= ours/", 6, "the name"),
        ("Ours = ours/", "Ours =", 6, "the mark"),
        ("Ours = ours/", "Ours = a", 6, "the mark"),
        ("Ours = ours/", "Ours = ours/ |", 6, "the mark"),
        ("Ours = ours/", "Ours = über", 6, "the mark"),
        ("Ours = ours/", "Ours = \"ours/", 6, "not closed"),
        ("Ours = ours/", "Ours = \"ours\"/", 6, "expected & or |"),
        (
            "[devices]\nmobile = phone\n",
            "",
            10,
            "[devices] is missing",
        ),
        ("search = find", "direct = find", 12, "is no group"),
        ("find.example", "find.example | ", 12, "is no host"),
        ("find.example", "https://find.example", 12, "is no host"),
    ] {
        let error = changed(from, to).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
    let endless = format!("Ours = {}", ["ours/"; 17].join(" & "));
    assert!(changed("Ours = ours/", &endless).is_err());
    let many: Vec<_> = (0..=MARKS_MAX).map(|mark| format!("m{mark}/")).collect();
    assert!(changed("ours/", &many.join(" | ")).is_err());
    assert!(ClickRules::parse("").is_err());
}

#[test]
fn a_file_replaces_the_built_in_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.txt");
    assert!(ClickRules::open(&path).is_err());
    std::fs::write(&path, SMALL).unwrap();
    assert!(ClickRules::open(&path).unwrap().is_human(b"person"));
    std::fs::write(&path, SMALL.replace("human", "people")).unwrap();
    let problem = ClickRules::open(&path).unwrap_err();
    assert!(problem.to_string().starts_with("line 2: "), "{problem}");
}

#[test]
fn mutated_rules_are_refused_or_read_agents() {
    let words: [&[u8]; 8] = [b"|", b"&", b"!", b"^", b"\"", b"=", b"\n[", b"\n#"];
    curt_testkit::fuzz::Fuzz::new("click rules", [SMALL.as_bytes().to_vec()])
        .with_words(words)
        .run(|input| {
            let rules = std::str::from_utf8(input).map(ClickRules::parse);
            let Ok(Ok(rules)) = rules else {
                return false;
            };
            rules.read(input).browser.len() <= 255
        });
}
