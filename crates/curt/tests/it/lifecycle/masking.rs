//! Secrets of the configuration, however they are written: no command shows a part of one.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::site::Site;

/// Parts of passwords, with signs between them that mean something elsewhere.
const PARTS: [&str; 2] = ["Qz7Qx1", "Zx9Qk2"];
const SIGNS: [&str; 6] = ["/", "@", "#", "?", "%", " "];

fn shapes(secret: &str) -> Vec<String> {
    vec![
        format!("postgres://curt:{secret}@127.0.0.1:1/db"),
        format!("postgres://curt:{secret}@127.0.0.1:1,localhost:2/db?sslmode=disable"),
        format!("postgres://curt:{secret}@db.example/db"),
        format!("postgres://127.0.0.1:1/db?password={secret}"),
        format!("postgres://curt:{secret}"),
        format!("host=127.0.0.1 user=curt password={secret}"),
        format!("curt:{secret}@127.0.0.1/db"),
    ]
}

fn assert_masked(output: &Output, what: &str) {
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    for part in PARTS {
        assert!(!said.contains(part), "{what} shows {said}");
    }
}

#[test]
fn no_command_shows_a_part_of_a_secret() {
    let site = Site::new(&[]);
    for sign in SIGNS {
        let secret = PARTS.join(sign);
        for shape in shapes(&secret) {
            let flag = format!("store.links={shape}");
            let output = site.output(&["check", "--set", &flag]);
            assert_masked(&output, &flag);
        }
        // In the place of another setting.
        for key in [
            "server.workers",
            "server.listen",
            "server.own_hosts",
            "server.public_url",
            "store.pool",
        ] {
            let flag = format!("{key}=redis://:{secret}@127.0.0.1:1");
            assert_masked(&site.output(&["check", "--set", &flag]), &flag);
        }
        let flag = format!("redis://:{secret}@h");
        assert_masked(&site.output(&["check", "--set", &flag]), &flag);
    }
}

#[test]
fn engines_that_do_not_answer_are_named_without_their_secrets() {
    let secret = PARTS.join("%2F");
    let site = Site::new(&[]);
    let flags = [
        format!("store.links=postgres://curt:{secret}@127.0.0.1:1/db"),
        format!("store.pool=redis://:{secret}@127.0.0.1:1"),
    ];
    let output = site.output(&["check", "--reach", "--set", &flags[0], "--set", &flags[1]]);
    assert_masked(&output, "check --reach");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("127.0.0.1:1/db does not answer"), "{said}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("postgres://curt:***@127.0.0.1:1/db"),
        "{shown}"
    );
}

#[test]
fn a_syntax_error_is_told_by_its_place() {
    let secret = PARTS.join("/");
    let site = Site::new(&[]);
    let file = site.folder().join("broken.toml");
    for (line, text) in [
        (
            2,
            format!("[store]\nlinks = \"postgres://curt:{secret}@h/db\n"),
        ),
        (
            3,
            format!("[store]\n\nlinks = postgres://curt:{secret}@h/db\n"),
        ),
        (2, format!("[store]\n\"{secret}\" \"{secret}\"\n")),
    ] {
        fs::write(&file, &text).unwrap();
        let output = site.output(&["check", "--config", file.to_str().unwrap()]);
        assert_masked(&output, &text);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("line {line}, column ")), "{said}");
        assert_eq!(output.status.code(), Some(78), "{said}");
    }
}

#[test]
fn the_environment_is_masked_too() {
    for sign in ["/", "@", " "] {
        let secret = PARTS.join(sign);
        for shape in shapes(&secret) {
            let variables = [("CURT_STORE_LINKS", Path::new(&shape))];
            let site = Site::with_environment(&[], &variables);
            assert_masked(&site.output(&["check"]), &shape);
        }
    }
}
