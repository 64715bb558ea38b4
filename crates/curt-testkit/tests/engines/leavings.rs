//! Nothing of an engine survives its test, whatever becomes of the test.

use std::io::{BufRead, BufReader};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use curt_testkit::engines::redis::Server;
use curt_testkit::need;

/// Set in the environment of a test process that holds an engine until it is killed.
const HOLD: &str = "HOLD_AN_ENGINE";

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

fn pid_and_folder(server: &Server) -> (String, String) {
    let pid = server.pid().unwrap().to_string();
    (pid, server.folder().display().to_string())
}

#[test]
fn a_dropped_engine_is_gone_with_its_folder() {
    let server = need!(Server::start());
    let (pid, folder) = pid_and_folder(&server);
    assert!(is_alive(&pid));
    drop(server);
    assert!(!is_alive(&pid));
    assert!(!Path::new(&folder).exists());
}

#[test]
fn an_engine_is_gone_after_a_panic() {
    let server = need!(Server::start());
    let (pid, folder) = pid_and_folder(&server);
    let held = AssertUnwindSafe(server);
    let panicked = std::panic::catch_unwind(move || {
        let _held = held;
        std::panic::resume_unwind(Box::new("as a failing test does"));
    });
    assert!(panicked.is_err());
    assert!(!is_alive(&pid));
    assert!(!Path::new(&folder).exists());
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn an_engine_is_held_when_asked() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let server = Server::start().unwrap();
    let (pid, folder) = pid_and_folder(&server);
    println!("\nholding {pid} {folder}");
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn an_engine_is_gone_after_its_test_was_killed() {
    drop(need!(Server::start()));
    let mut tests = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leavings::an_engine_is_held_when_asked"])
        .arg("--nocapture")
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(tests.stdout.take().unwrap()).lines();
    let held = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("holding ").map(str::to_owned));
    let held = held.unwrap();
    let (pid, folder) = held.split_once(' ').unwrap();
    assert!(is_alive(pid) && Path::new(folder).exists());
    tests.kill().unwrap();
    tests.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while is_alive(pid) || Path::new(folder).exists() {
        assert!(Instant::now() < end, "{held} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
