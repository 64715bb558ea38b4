use serde_json::Value;

use super::{printed, stderr, stdout};
use crate::site::Site;

#[test]
fn migrate_says_what_it_does_and_does_it_once() {
    let site = Site::new(&[]);
    let planned = printed(&site.output(&["migrate", "--dry-run"]));
    assert!(planned.contains("would apply 0001"), "{planned}");
    let planned_again = printed(&site.output(&["migrate", "--dry-run"]));
    assert_eq!(planned, planned_again, "a dry run changed something");
    let done = printed(&site.output(&["migrate"]));
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

#[test]
fn link_commands_say_what_is_wrong() {
    let site = Site::start(&[]);
    let url = format!("http://{}", site.http());
    for (arguments, part) in [
        (&["show", "plan"][..], "There is no such link"),
        (&["add", "javascript:alert(1)"], "target"),
        (
            &["add", "https://example.com/", "--alias", "api"],
            "reserved",
        ),
        (&["edit", "plan"], "nothing to change"),
    ] {
        let common = ["--url", &url, "--api-key", site.token()];
        let failed = site.output(&[&["link"], arguments, &common].concat());
        let said = stderr(&failed);
        assert_eq!(failed.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let without_key = site.output(&["link", "list", "--url", &url]);
    assert!(
        stderr(&without_key).contains("curt api-key add"),
        "{}",
        stderr(&without_key)
    );
    let nobody = site.output(&["link", "list", "--url", "http://127.0.0.1:1"]);
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
fn every_command_has_help_with_an_example() {
    let site = Site::new(&[]);
    let top = printed(&site.output(&["--help"]));
    assert!(top.contains("curt serve"), "{top}");
    for command in [
        "serve", "check", "migrate", "user", "api-key", "keys", "audit", "link", "stats", "bench",
    ] {
        assert!(top.contains(command), "{top}");
        let help = printed(&site.output(&[command, "--help"]));
        let example = help.split("Example:\n").nth(1).unwrap_or_default();
        assert!(
            example.contains(&format!("curt {command}")),
            "{command}: {help}"
        );
    }
    for (command, actions) in [
        ("api-key", &["add", "list", "rotate", "revoke"][..]),
        (
            "user",
            &[
                "add", "list", "password", "role", "disable", "enable", "limit",
            ],
        ),
        ("user", &["sessions", "sign-out", "invite"]),
        ("link", &["add", "show", "list", "edit", "rm"]),
        ("keys", &["status"]),
        ("bench", &["keys"]),
    ] {
        for action in actions {
            let help = printed(&site.output(&[command, action, "--help"]));
            assert!(help.contains("Usage: curt"), "{help}");
        }
    }
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
        .args(["migrate", "--dry-run"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(stderr(&ended), "");
    assert_eq!(ended.status.code(), Some(141), "as ended by SIGPIPE");
}
