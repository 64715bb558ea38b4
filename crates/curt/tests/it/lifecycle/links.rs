//! `curt link`.

use curt_testkit::http::Request;
use jiff::Timestamp;
use serde_json::Value;

use super::accounts::with_input;
use super::{printed, stderr, stdout};
use crate::site::Site;

fn seconds_of(time: &str) -> i64 {
    time.parse::<Timestamp>().unwrap().as_second()
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
    assert!(!printed(&run(&["list"])).contains("/plan"));
    assert!(printed(&run(&["list", "--state", "deleted"])).contains("/plan"));
    let restored = printed(&run(&["restore", "plan", "--expires", "2030-01-31"]));
    assert!(
        restored.contains("active") && restored.contains("2030-02-01T00:00:00"),
        "{restored}"
    );
    assert_eq!(site.api().follow("plan").unwrap().status, 302);
}

#[test]
fn targets_and_times_are_taken_as_they_are_typed() {
    let mut site = Site::start(&[]);
    let owner = site.token().to_owned();
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
    let ends = link(short)["expires_at"].as_str().map(seconds_of).unwrap();
    let made = link(short)["created_at"].as_str().map(seconds_of).unwrap();
    let week = 7 * 24 * 3_600;
    assert!(
        (week - 60..=week + 60).contains(&(ends - made)),
        "7d is {} s",
        ends - made
    );
    printed(&run(&["edit", short, "--expires", "2031-01-31"]));
    assert_eq!(link(short)["expires_at"], "2031-02-01T00:00:00.000Z");
    printed(&run(&["edit", short, "--expires", "never"]));
    assert_eq!(link(short)["expires_at"], Value::Null);

    assert!(site.terminate().success());
}

#[test]
fn who_may_follow_a_link_is_said_on_the_command_line() {
    let site = Site::start(&[]);
    let owner = site.token().to_owned();
    let admin = printed(&site.output(&["api-key", "add", "admin"]));
    let url = format!("http://{}", site.http());
    let run = |arguments: &[&str]| {
        let common = ["--url", &url, "--api-key", &owner];
        site.output(&[&["link"], arguments, &common].concat())
    };
    let link = |key: &str| -> Value {
        serde_json::from_str(&printed(&run(&["show", key, "--json"]))).unwrap()
    };
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
    let bob = site.new_token("bob");
    let follow = || {
        let request = Request::get("/mine").bearer(&bob);
        site.api().send(&request).unwrap().status
    };
    assert_eq!(follow(), 403);
    printed(&run(&["permit", "mine", "bob@example.com"]));
    assert_eq!(follow(), 302);
    let listed = printed(&run(&["permissions", "mine"]));
    assert!(listed.contains("bob@example.com"), "{listed}");
    printed(&run(&["forbid", "mine", "Bob@example.com"]));
    assert_eq!(follow(), 403);
    let again = run(&["forbid", "mine", "bob@example.com"]);
    assert_eq!(again.status.code(), Some(3), "{}", stderr(&again));

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
}

/// It counts without a word about visibility.
#[test]
fn a_password_comes_from_standard_input() {
    let site = Site::start(&[]);
    let owner = site.token().to_owned();
    let url = format!("http://{}", site.http());
    let run = |arguments: &[&str]| {
        let common = ["--url", &url, "--api-key", &owner];
        site.output(&[&["link"], arguments, &common].concat())
    };
    printed(&run(&["add", "example.com/b", "--alias", "mine"]));
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
    let shown: Value = serde_json::from_str(&printed(&run(&["show", "mine", "--json"]))).unwrap();
    assert_eq!(shown["visibility"], "password");
    let form = "application/x-www-form-urlencoded";
    let guess = |password: &str| {
        let request = Request::post("/mine").body(form, format!("password={password}"));
        site.api().send(&request).unwrap().status
    };
    assert_eq!(
        guess("open+sesame%0A"),
        401,
        "the line feed is not part of it"
    );
    assert_eq!(guess("open+sesame"), 303);
    let unseen = run(&["add", "example.com", "--visibility", "password"]);
    assert_eq!(unseen.status.code(), Some(4));
    assert!(
        stderr(&unseen).contains("--password-stdin"),
        "{}",
        stderr(&unseen)
    );
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
