use serde_json::Value;

use super::{printed, stderr};
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
    let await_keys = |is_told: &dyn Fn(&Value) -> bool| {
        crate::wait::eventually(std::time::Duration::from_secs(30), || {
            let status = printed(&site.output(&["keys", "status", "--json"]));
            let status: Value = serde_json::from_str(&status).unwrap();
            match is_told(&status["keys"]) && status["balances"] == true {
                true => Ok(()),
                false => Err(status.to_string()),
            }
        });
    };
    // A create that comes before the first keys takes a random one.
    await_keys(&|keys| keys["buffered"].as_u64() > Some(0));
    for number in 0..3 {
        site.api()
            .create(&format!("https://example.com/{number}"))
            .unwrap();
    }
    await_keys(&|keys| {
        keys["used"] == 3 && keys["leaked"] == 0 && keys["buffered"].as_u64() > Some(0)
    });
    let table = printed(&site.output(&["keys", "status"]));
    assert!(
        !table.contains('?') && table.contains("buffered"),
        "{table}"
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
