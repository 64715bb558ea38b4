//! The process harness against a script that behaves like a server, well or badly.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot start its script should stop"
)]

use std::path::Path;
use std::time::Duration;

use curt_testkit::process::App;
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
