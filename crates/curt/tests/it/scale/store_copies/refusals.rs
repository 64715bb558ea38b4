//! What is not copied, and what is said then.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{WAIT_MAX, app, fill, noted_in, spawn, sqlite};

#[test]
fn what_cannot_be_copied_is_refused_with_the_reason() {
    let app = app();
    let path = |name: &str| app.folder().join(name);
    fill(&path("a.db"), 600);
    fill(&path("b.db"), 600);
    let (a, b, new) = (
        sqlite(&path("a.db")),
        sqlite(&path("b.db")),
        sqlite(&path("new.db")),
    );
    let absent = sqlite(&path("absent.db"));
    for (arguments, code, said) in [
        (
            vec!["--from", &a, "--to", &a],
            4,
            "the database that --from names",
        ),
        (vec!["--from", &a, "--to", &b], 4, "--into-existing"),
        (vec!["--from", &a, "--to", &b, "--resume"], 4, "not empty"),
        (
            vec!["--from", &absent, "--to", &new],
            78,
            "absent.db is missing",
        ),
        (
            vec!["--from", "memory:", "--to", &new],
            78,
            "gone with its process",
        ),
        (
            vec!["--from", &a, "--to", "curt.db"],
            78,
            "begins with a scheme",
        ),
        (vec!["--from", &a], 2, "--to"),
    ] {
        let arguments: Vec<&str> = std::iter::once("copy").chain(arguments).collect();
        let output = app.output(&arguments).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    // The same links, made by themselves: what is there is the same, and nothing is lost.
    let same = app
        .run(&[
            "copy",
            "--from",
            &a,
            "--to",
            &b,
            "--into-existing",
            "--json",
        ])
        .unwrap();
    let same: Value = serde_json::from_str(&same).unwrap();
    assert_eq!(same["links"]["written"], 0, "{same}");
}

#[test]
fn a_copy_that_was_begun_is_gone_on_with_by_resume_alone() {
    let app = app();
    let path = |name: &str| app.folder().join(name);
    fill(&path("a.db"), 600);
    fill(&path("b.db"), 600);
    let (a, b, new) = (
        sqlite(&path("a.db")),
        sqlite(&path("b.db")),
        sqlite(&path("new.db")),
    );
    let mut begun = spawn(&app, &["copy", "--from", &a, "--to", &new, "--rate", "10"]);
    let deadline = Instant::now() + WAIT_MAX;
    let is_begun = |noted: String| noted.contains("at links");
    while !noted_in(&path("new.db")).is_some_and(is_begun) {
        assert!(Instant::now() < deadline, "the copy does not begin");
        thread::sleep(Duration::from_millis(20));
    }
    begun.kill().unwrap();
    begun.wait().unwrap();
    let what: &[&str] = &["--resume", "--what", "accounts"];
    for (from, more, said) in [
        (&a, &[][..], "--resume goes on"),
        (&b, &[], "another source"),
        (&a, what, "links were begun here"),
    ] {
        let copy = ["copy", "--from", from, "--to", &new];
        let output = app.output(&[&copy[..], more].concat()).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
