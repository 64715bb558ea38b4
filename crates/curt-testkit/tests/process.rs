//! The process harness against a script that behaves like a server, well or badly.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot start its script should stop"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::process::{App, Guarded};
use tempfile::TempDir;

/// Counts its starts in its folder, prints its arguments, becomes ready, and stops when asked to.
const GOOD: &str = r#"
args=$*
while [ $# -gt 0 ]; do
  case "$1" in --ready-file) ready=$2 ;; esac
  shift
done
echo "arguments: $args"
echo "to stderr" >&2
echo start >> starts
trap 'echo stopping; exit 3' TERM
printf 'http=127.0.0.1:4000\nadmin=127.0.0.1:4001\n' > "$ready.new"
mv "$ready.new" "$ready"
while :; do sleep 0.01; done
"#;

/// Set in the environment of a test process that holds a server until it is killed.
const HOLD: &str = "HOLD_A_SERVER";

/// The script as an installation. The folder with the script must outlive it.
fn app(script: &str) -> (TempDir, App) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("server.sh");
    std::fs::write(&path, script).unwrap();
    (folder, App::new(path).unwrap().behind(["/bin/sh"]))
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_is_ready_with_its_addresses_and_settings() {
    let (_folder, app) = app(GOOD);
    let app = app.setting("server.workers", 2);
    let mut server = app.start_with(&["redirect"]).unwrap();
    assert_eq!(server.http().unwrap().port(), 4_000);
    assert_eq!(server.admin().unwrap().port(), 4_001);
    assert!(server.is_running().unwrap());
    assert!(server.resident_bytes().unwrap() > 0);
    let logs = server.logs();
    for part in [
        "serve --set server.listen=127.0.0.1:0",
        "--set server.workers=2",
        "redirect",
        "to stderr",
    ] {
        assert!(logs.contains(part), "{part} is not in: {logs}");
    }
}

#[test]
fn a_killed_server_is_gone_and_starts_again_on_the_same_folder() {
    let (_folder, app) = app(GOOD);
    for _ in 0..3 {
        let server = app.start().unwrap();
        let pid = server.pid();
        server.kill().unwrap();
        assert!(!is_alive(pid));
    }
    let starts = std::fs::read_to_string(app.folder().join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 3);
}

#[test]
fn a_terminated_server_ends_with_its_status() {
    let (_folder, app) = app(GOOD);
    let server = app.start().unwrap();
    let status = server.terminate(Duration::from_secs(10)).unwrap();
    assert_eq!(status.code(), Some(3));
}

#[test]
fn a_server_that_does_not_stop_is_an_error_and_killed() {
    let (_folder, app) = app(&GOOD.replace("'echo stopping; exit 3'", "'echo no'"));
    let server = app.start().unwrap();
    let pid = server.pid();
    let error = server.terminate(Duration::from_millis(200)).unwrap_err();
    assert!(format!("{error:#}").contains("did not stop"), "{error:#}");
    assert!(!is_alive(pid));
}

#[test]
fn a_dropped_server_is_killed() {
    let (_folder, app) = app(GOOD);
    let server = app.start().unwrap();
    let pid = server.pid();
    drop(server);
    assert!(!is_alive(pid));
}

#[test]
fn a_server_that_ends_early_is_an_error_with_its_output() {
    let (_folder, app) = app("echo 'no such setting' >&2; exit 2");
    let error = format!("{:#}", app.start().unwrap_err());
    assert!(error.contains("no such setting"), "{error}");
    assert!(error.contains("before it was ready"), "{error}");
}

#[test]
fn a_server_that_is_never_ready_is_an_error_in_time() {
    let (_folder, app) = app("echo waiting; while :; do sleep 0.01; done");
    let app = app.ready_within(Duration::from_millis(200));
    let error = format!("{:#}", app.start().unwrap_err());
    assert!(error.contains("was not ready"), "{error}");
}

#[test]
fn a_command_returns_what_it_printed() {
    let script = "echo \"ran $* with $CURT_STORE_LINKS\"; echo oops >&2; [ \"$1\" = good ]";
    let (_folder, app) = app(script);
    let app = app.setting("store.links", "memory:");
    let printed = app.run(&["good", "one"]).unwrap();
    assert_eq!(printed, "ran good one with memory:\n");
    let error = app.run(&["bad"]).unwrap_err();
    assert!(format!("{error:#}").contains("oops"), "{error:#}");
    assert_eq!(app.output(&["bad"]).unwrap().status.code(), Some(1));
}

#[test]
fn a_server_that_ended_by_itself_cannot_be_killed() {
    let crashing = GOOD.replace("while :; do sleep 0.01; done", "echo 'out of luck'; exit 9");
    let (_folder, app) = app(&crashing);
    let mut server = app.start().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while server.is_running().unwrap() {
        assert!(Instant::now() < end, "the script does not end");
        thread::sleep(Duration::from_millis(5));
    }
    let error = format!("{:#}", server.kill().unwrap_err());
    for part in ["ended by itself", "9", "out of luck"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn a_server_is_held_when_asked() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let (scripts, app) = app(GOOD);
    let server = app.start().unwrap();
    let mut command = Command::new("sleep");
    let child = Guarded::spawn(command.arg("600")).unwrap();
    println!(
        "\nholding {} {} {}",
        server.pid(),
        child.id(),
        app.folder().display()
    );
    thread::sleep(Duration::from_secs(600));
    drop(scripts);
}

#[test]
fn servers_and_children_are_gone_after_their_test_was_killed() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "a_server_is_held_when_asked", "--nocapture"])
        .env(HOLD, "1")
        .stdout(Stdio::piped());
    let mut tests = Guarded::spawn(&mut command).unwrap();
    let lines = BufReader::new(tests.stdout.take().unwrap()).lines();
    let held = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("holding ").map(str::to_owned));
    let held = held.unwrap();
    let words: Vec<&str> = held.split(' ').collect();
    let pids: Vec<u32> = words[..2].iter().flat_map(|word| word.parse()).collect();
    let folder = Path::new(words[2]);
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| is_alive(*pid)) && folder.exists());
    tests.kill().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while pids.iter().any(|pid| is_alive(*pid)) || folder.exists() {
        assert!(Instant::now() < end, "{held} is still there");
        thread::sleep(Duration::from_millis(20));
    }
}
