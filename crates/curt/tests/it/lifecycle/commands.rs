use serde_json::Value;

use super::{printed, stderr, stdout};
use crate::site::Site;

#[test]
fn migrate_says_what_it_does_and_does_it_once() {
    let site = Site::new(&[]);
    let plan = ["migrate", "--new", "--dry-run"];
    let planned = printed(&site.output(&plan));
    assert!(planned.contains("would apply 0001"), "{planned}");
    assert!(!site.folder().join("data").exists(), "a dry run made data");
    assert_eq!(planned, printed(&site.output(&plan)));
    let done = printed(&site.output(&["migrate", "--new"]));
    assert_eq!(done, planned.replace("would apply", "applied"));
    for arguments in [&["migrate"][..], &["migrate", "--dry-run"]] {
        let again = printed(&site.output(arguments));
        assert!(again.contains("up to date"), "{again}");
    }
}

#[test]
fn links_can_be_managed_from_the_command_line() {
    let site = Site::start(&[]);
    let url = format!("http://{}", site.http());
    let run = |arguments: &[&str]| {
        let common = ["--url", &url, "--api-key", site.token()];
        site.output(&[&["link"], arguments, &common].concat())
    };
    let target = "https://example.com/a/long/address";
    let short = printed(&run(&[
        "add", target, "--alias", "plan", "--tag", "Team", "--title", "The plan",
    ]));
    assert_eq!(short, format!("{url}/plan\n"), "the short URL alone");
    let followed = site.api().follow("plan").unwrap();
    assert_eq!(followed.header("location"), Some(target));

    let shown = printed(&run(&["show", "plan"]));
    assert!(
        shown.contains(target) && shown.contains("The plan") && shown.contains("team"),
        "{shown}"
    );
    let added = printed(&run(&[
        "add",
        "https://example.com/other",
        "--json",
        "--status",
        "308",
    ]));
    let added: Value = serde_json::from_str(&added).unwrap();
    assert_eq!(added["redirect_status"], 308);

    let listed = printed(&run(&["list", "--search", "LONG"]));
    assert!(
        listed.contains("/plan") && !listed.contains("other"),
        "{listed}"
    );
    let listed = printed(&run(&["list", "--tag", "team", "--json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["links"].as_array().unwrap().len(), 1);
    let first = run(&["list", "--limit", "1"]);
    let said = stderr(&first);
    let cursor = said
        .trim()
        .strip_prefix("more: add --cursor ")
        .expect(&said);
    let second = printed(&run(&["list", "--limit", "1", "--cursor", cursor]));
    assert_ne!(stdout(&first), second, "the second page is the first");

    printed(&run(&[
        "edit",
        "plan",
        "--target",
        "https://example.com/new",
        "--expires",
        "never",
    ]));
    let followed = site.api().follow("plan").unwrap();
    assert_eq!(followed.header("location"), Some("https://example.com/new"));
    printed(&run(&["rm", "plan"]));
    assert_eq!(site.api().follow("plan").unwrap().status, 410);
}

/// A command with its standard input.
fn with_input(site: &Site, arguments: &[&str], input: &str) -> std::process::Output {
    use std::io::Write as _;
    let mut command = site.app().command();
    command.args(arguments).stdin(std::process::Stdio::piped());
    let pipes = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn everything_about_a_link_can_be_said_on_the_command_line() {
    let mut site = Site::start(&[]);
    let owner = site.token().to_owned();
    let admin = printed(&site.output(&["api-key", "add", "admin"]));
    let url = format!("http://{}", site.http());
    let run = |arguments: &[&str]| {
        let common = ["--url", &url, "--api-key", &owner];
        site.output(&[&["link"], arguments, &common].concat())
    };
    // A host alone, a time from now, and the whole short URL wherever a key is taken.
    let short = printed(&run(&["add", "example.com/a", "--expires", "7d"]));
    let short = short.trim();
    let link = |key: &str| -> Value {
        serde_json::from_str(&printed(&run(&["show", key, "--json"]))).unwrap()
    };
    assert_eq!(link(short)["target"], "https://example.com/a");
    printed(&run(&["edit", short, "--expires", "2031-01-31"]));
    assert_eq!(link(short)["expires_at"], "2031-02-01T00:00:00.000Z");
    printed(&run(&["edit", short, "--expires", "never"]));
    assert_eq!(link(short)["expires_at"], Value::Null);

    // Private, with a permission by email.
    let private = [
        "add",
        "example.com/b",
        "--visibility",
        "private",
        "--alias",
        "mine",
    ];
    printed(&run(&private));
    site.new_token("bob");
    printed(&run(&["permit", "mine", "bob@example.com"]));
    let listed = printed(&run(&["permissions", "mine"]));
    assert!(listed.contains("bob@example.com"), "{listed}");
    printed(&run(&["forbid", "mine", "Bob@example.com"]));
    let again = run(&["forbid", "mine", "bob@example.com"]);
    assert_eq!(again.status.code(), Some(3), "{}", stderr(&again));

    // A password, which counts without a word about visibility.
    let arguments = [
        "link",
        "edit",
        "mine",
        "--password-stdin",
        "--url",
        &url,
        "--api-key",
        &owner,
    ];
    printed(&with_input(&site, &arguments, "open sesame\n"));
    assert_eq!(link("mine")["visibility"], "password");
    let unseen = run(&["add", "example.com", "--visibility", "password"]);
    assert_eq!(unseen.status.code(), Some(4));
    assert!(
        stderr(&unseen).contains("--password-stdin"),
        "{}",
        stderr(&unseen)
    );

    // Off and on, by an administrator.
    let refused = run(&["disable", "mine"]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr(&refused));
    for (action, state) in [("disable", "disabled"), ("enable", "active")] {
        let switch = [
            "link",
            action,
            "mine",
            "--url",
            &url,
            "--api-key",
            admin.trim(),
        ];
        printed(&site.output(&switch));
        assert_eq!(link("mine")["state"], state);
    }
    assert!(site.terminate().success());
}

#[test]
fn many_links_come_from_standard_input_and_each_is_judged_alone() {
    let site = Site::start(&[]);
    let url = format!("http://{}", site.http());
    let bulk = [
        "link",
        "add",
        "-",
        "--tag",
        "import",
        "--url",
        &url,
        "--api-key",
        site.token(),
    ];
    let lines = "# old links\nexample.com/one first\n\nfoo\nhttps://example.com/two second\n\
                 https://example.com/three first\n";
    let made = with_input(&site, &bulk, lines);
    assert_eq!(stdout(&made), format!("{url}/first\n{url}/second\n"));
    assert_eq!(made.status.code(), Some(4));
    let said = stderr(&made);
    for part in ["line 4", "line 6", "2 of 4 links were refused", "target"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(site.api().follow("second").unwrap().status, 302);
    let tagged = site.output(&[
        "link",
        "list",
        "--tag",
        "import",
        "--json",
        "--url",
        &url,
        "--api-key",
        site.token(),
    ]);
    let tagged: Value = serde_json::from_str(&printed(&tagged)).unwrap();
    assert_eq!(tagged["links"].as_array().unwrap().len(), 2);
    let many: String = (0..1_200)
        .map(|n| format!("https://example.com/{n}\n"))
        .collect();
    let made = printed(&with_input(&site, &bulk, &many));
    assert_eq!(made.lines().count(), 1_200);
}

#[test]
fn tables_fit_the_terminal_and_times_are_as_wide_as_each_other() {
    let site = Site::start(&[]);
    let url = format!("http://{}", site.http());
    let target = format!("https://example.com/{}", "a/very/long/address/".repeat(10));
    for number in 0..3 {
        let arguments = [
            "link",
            "add",
            &target,
            "--title",
            &number.to_string(),
            "--url",
            &url,
            "--api-key",
            site.token(),
        ];
        printed(&site.output(&arguments));
    }
    let arguments = ["link", "list", "--url", &url, "--api-key", site.token()];
    let whole = printed(&site.output(&arguments));
    assert_eq!(whole.lines().count(), 4, "a line per link: {whole}");
    let times: Vec<&str> = whole
        .split_whitespace()
        .filter(|word| word.ends_with('Z') && word.contains("T"))
        .collect();
    assert!(
        times.len() == 6 && times.iter().all(|time| time.len() == 20),
        "{times:?}"
    );
    let mut command = site.app().command();
    let narrow = command
        .args(arguments)
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    let narrow = printed(&narrow);
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 80),
        "{narrow}"
    );
}

#[test]
fn an_empty_api_key_and_usage_lines_say_what_is_missing() {
    let site = Site::new(&[]);
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = site.app().command();
        command.args(arguments).envs(variables.iter().copied());
        command.output().unwrap()
    };
    let empty = run(&["link", "list"], &[("CURT_API_KEY", "")]);
    assert_eq!(empty.status.code(), Some(5));
    assert!(
        stderr(&empty).contains("CURT_API_KEY is empty"),
        "{}",
        stderr(&empty)
    );
    let variables = [("CURT_API_KEY", "k"), ("CURT_URL", "http://127.0.0.1:1")];
    let usage = run(&["link", "add"], &variables);
    let said = stderr(&usage);
    assert_eq!(usage.status.code(), Some(2));
    let line = said
        .lines()
        .find(|line| line.starts_with("Usage:"))
        .expect(&said);
    assert!(
        !line.contains("--api-key") && line.contains("<TARGET>"),
        "{line}"
    );
}

#[test]
fn commands_without_data_say_where_they_looked_and_make_none() {
    let site = Site::new(&[]);
    for arguments in [
        &["user", "list"][..],
        &["user", "add", "ann@example.com"],
        &["api-key", "add", "deploy"],
        &["audit"],
        &["keys", "status"],
        &["migrate"],
        &["migrate", "--dry-run"],
    ] {
        let refused = site.output(arguments);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(78), "{arguments:?}: {said}");
        let data = site.folder().join("data");
        for part in [
            "data_dir",
            "--set data_dir=",
            "--config",
            "curt.db",
            "curt serve",
        ] {
            assert!(said.contains(part), "{arguments:?}: {part}: {said}");
        }
        assert!(said.contains(data.to_str().unwrap()), "where: {said}");
        assert!(!data.exists(), "{arguments:?}");
    }
    let reach = site.output(&["check", "--reach"]);
    assert!(reach.status.success() && !site.folder().join("data").exists());
}

#[test]
fn the_status_of_keys_is_known_on_the_default_server() {
    let site = Site::start(&[]);
    for number in 0..3 {
        site.api()
            .create(&format!("https://example.com/{number}"))
            .unwrap();
    }
    crate::wait::eventually(std::time::Duration::from_secs(30), || {
        let status = printed(&site.output(&["keys", "status", "--json"]));
        let status: Value = serde_json::from_str(&status).unwrap();
        let keys = &status["keys"];
        let is_told =
            keys["used"] == 3 && keys["leaked"] == 0 && keys["buffered"].as_u64() > Some(0);
        let is_balanced = status["balances"] == true;
        match is_told && is_balanced {
            true => Ok(()),
            false => Err(status.to_string()),
        }
    });
    let table = printed(&site.output(&["keys", "status"]));
    assert!(
        !table.contains('?') && table.contains("buffered"),
        "{table}"
    );
}

#[test]
fn link_commands_say_what_is_wrong() {
    let site = Site::start(&[]);
    let url = format!("http://{}", site.http());
    for (arguments, code, part) in [
        (&["show", "plan"][..], 3, "There is no such link"),
        (&["add", "javascript:alert(1)"], 4, "target"),
        (
            &["add", "https://example.com/", "--alias", "api"],
            4,
            "reserved",
        ),
        (&["edit", "plan"], 4, "nothing to change"),
    ] {
        let common = ["--url", &url, "--api-key", site.token()];
        let failed = site.output(&[&["link"], arguments, &common].concat());
        let said = stderr(&failed);
        assert_eq!(failed.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let without_key = site.output(&["link", "list", "--url", &url]);
    assert_eq!(without_key.status.code(), Some(5));
    assert!(
        stderr(&without_key).contains("curt api-key add"),
        "{}",
        stderr(&without_key)
    );
    let nobody = site.output(&["link", "list", "--url", "http://127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(6));
    assert!(
        stderr(&nobody).contains("is the server running?"),
        "{}",
        stderr(&nobody)
    );
}

#[test]
fn bench_keys_prints_every_strategy_with_distinct_keys() {
    let site = Site::new(&[]);
    let output = site.output(&["bench", "keys", "--count", "200", "--json"]);
    let rows: Value = serde_json::from_str(&printed(&output)).unwrap();
    let strategies: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            assert_eq!(
                (&row["keys"], &row["distinct"]),
                (&200.into(), &200.into()),
                "{row}"
            );
            row["strategy"].as_str().unwrap()
        })
        .collect();
    assert_eq!(
        strategies,
        [
            "pool",
            "status",
            "file",
            "claim",
            "snowflake",
            "sequence",
            "hash"
        ]
    );
    assert!(
        !site.folder().join("data").exists(),
        "a measurement touched the data"
    );
    let table = printed(&site.output(&[
        "bench",
        "keys",
        "--count",
        "50",
        "--strategies",
        "hash,sequence",
    ]));
    assert!(table.contains("keys/s"), "{table}");
    for strategy in ["hash", "sequence"] {
        let row = table
            .lines()
            .find(|line| line.trim_start().starts_with(strategy));
        let cells: Vec<&str> = row.into_iter().flat_map(str::split_whitespace).collect();
        assert_eq!(&cells[2..4], ["50", "50"], "keys and distinct: {table}");
    }
}

#[test]
fn help_version_completions_and_manual_are_printed_without_an_installation() {
    let site = Site::new(&[]);
    let top = printed(&site.output(&["--help"]));
    for part in ["curt serve", "Exit codes:", "78  the configuration"] {
        assert!(top.contains(part), "{part}: {top}");
    }
    let help = printed(&site.output(&["link", "add", "--help"]));
    let options = help.find("--password-stdin").expect(&help);
    let server = help.find("Server:").expect(&help);
    assert!(options < server, "own options come first: {help}");
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&site.output(&["completions", shell]));
        assert!(script.contains("api-key"), "{shell}");
    }
    let page = printed(&site.output(&["man"]));
    assert!(page.contains(".TH curt 1"), "{page}");
    std::fs::create_dir(site.folder().join("man1")).unwrap();
    printed(&site.output(&["man", "--into", "man1"]));
    for name in ["curt.1", "curt-link.1", "curt-link-add.1"] {
        let page = std::fs::read_to_string(site.folder().join("man1").join(name)).unwrap();
        let command = name.trim_end_matches(".1");
        assert!(page.contains(&format!(".TH {command} 1")), "{page}");
    }
    assert!(!site.folder().join("data").exists());
    assert!(printed(&site.output(&["--version"])).starts_with("curt "));
    let nothing = site.output(&[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("Usage:"), "{}", stderr(&nothing));
}

/// `curt … | head`: what is left to say does not matter, and is no failure that anybody must hear of.
#[test]
fn a_command_ends_quietly_when_nobody_reads_on() {
    let site = Site::new(&[]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = site.app().command();
    let ended = command
        .args(["migrate", "--new", "--dry-run"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(stderr(&ended), "");
    assert_eq!(ended.status.code(), Some(141), "as ended by SIGPIPE");
}
