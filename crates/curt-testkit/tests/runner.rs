//! The runner of the tests: a test binary that hangs is ended, and one that leaves something behind has failed.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot start its script should stop"
)]

use std::path::Path;
use std::process::{Command, Output};

use curt_testkit::skipped;

/// Runs the script in place of a test binary.
fn run(script: &str, time_max: u32) -> Output {
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/test-runner.sh");
    let mut command = Command::new(runner);
    command
        .args(["/bin/sh", "-c", script])
        .env("TEST_TIME_MAX", time_max.to_string())
        .env("TEST_GRACE", "1");
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_binary_keeps_its_status_and_output() {
    let ended = run("echo tested; exit 101", 600);
    assert_eq!(ended.status.code(), Some(101), "{}", stderr(&ended));
    assert_eq!(ended.stdout, b"tested\n");
    assert!(run("exit 0", 600).status.success());
}

#[test]
fn a_binary_that_hangs_is_ended_and_its_threads_are_named() {
    let ended = run("exec sleep 600", 1);
    assert_eq!(ended.status.code(), Some(137));
    let said = stderr(&ended);
    assert!(said.contains("not done after 1 s"), "{said}");
    assert!(said.contains("1 sleep"), "{said}");
}

#[test]
fn a_process_that_is_left_behind_is_a_failure() {
    let ended = run("setsid sleep 601 >/dev/null 2>&1 & exit 0", 600);
    assert_eq!(ended.status.code(), Some(125));
    let said = stderr(&ended);
    assert!(said.contains("left behind: process"), "{said}");
    assert!(said.contains("sleep 601"), "{said}");
}

#[test]
fn a_mount_that_is_left_behind_is_a_failure() {
    let script = "mkdir $TMPDIR/disk && mount -t tmpfs tmpfs $TMPDIR/disk || exit 42";
    let ended = run(script, 600);
    if ended.status.code() == Some(42) {
        return skipped::say("runner", "nothing can be mounted here");
    }
    assert_eq!(ended.status.code(), Some(125));
    let said = stderr(&ended);
    assert!(said.contains("left behind: mounted"), "{said}");
}
