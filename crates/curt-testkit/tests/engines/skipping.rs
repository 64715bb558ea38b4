//! A test without its engine is skipped so that everyone sees it.

use std::process::Command;

use curt_testkit::engines::redis::Server;
use curt_testkit::need;

#[test]
fn a_test_without_its_engine_is_skipped_by_name_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("skipped");
    // The next test, where no program can be found.
    let tests = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "skipping::a_test_with_its_engine_is_not_skipped"])
        .env("PATH", "/nonexistent")
        .env("SKIPPED_TESTS_LIST", &list)
        .output()
        .unwrap();
    assert!(tests.status.success());
    let line = "SKIPPED engines::skipping::a_test_with_its_engine_is_not_skipped: Redis is missing \
        (install it with: make engines, or apt-get install redis-server redis-tools)\n";
    assert_eq!(String::from_utf8(tests.stderr).unwrap(), line);
    assert_eq!(std::fs::read_to_string(list).unwrap(), line);
}

#[test]
fn a_test_with_its_engine_is_not_skipped() {
    let server = need!(Server::start());
    assert!(server.serves());
}
