//! What is on disk is for the user that curt runs as, whatever the umask is.

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use curt_testkit::process::App;

use crate::alone::Company;
use crate::api::Api;
use crate::length::time_max;
use crate::site::STOP_TIME_MAX;
use crate::wait::eventually;

/// The real binary, started with that umask.
fn app(umask: &str) -> App {
    let script = format!("umask {umask}; exec \"$0\" \"$@\"");
    App::new(env!("CARGO_BIN_EXE_curt"))
        .unwrap()
        .behind(["sh", "-c", &script])
        .ready_within(Duration::from_secs(120))
        .setting("keys.strategy", "file")
        .setting("keys.file.file_keys", 1_000)
        .setting("keys.file.block_keys", 500)
        .setting("keys.file.refill_under", 100)
        .setting("links.blocklist", "data/blocked.txt")
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Everything below a folder, and the folder.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    found
}

/// What is open to others, but for the list that the operator keeps.
fn open_to_others(folder: &Path) -> Vec<String> {
    let open = |path: &PathBuf| match fs::symlink_metadata(path) {
        // The server works on: a segment of the spool may be gone since the folder was read.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        found => {
            let mode = found.unwrap().permissions().mode() & 0o7777;
            (mode & 0o077 != 0).then(|| format!("{mode:o} {}", path.display()))
        }
    };
    let kept = |path: &PathBuf| !path.ends_with("blocked.txt");
    let found = tree(folder).into_iter().filter(kept);
    found.filter_map(|path| open(&path)).collect()
}

#[test]
fn nobody_else_can_read_what_is_written_whatever_the_umask() {
    let _company = Company::join();
    for umask in ["000", "022"] {
        let app = app(umask);
        let data = app.folder().join("data");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
        let list = data.join("blocked.txt");
        fs::write(&list, "blocked.example\n").unwrap();
        fs::set_permissions(&list, Permissions::from_mode(0o644)).unwrap();
        app.run(&["migrate", "--new"]).unwrap();
        let token = app.run(&["api-key", "add", "tests"]).unwrap();

        let server = app.start().unwrap();
        let is_ready_file = |path: &PathBuf| path.extension().is_some_and(|end| end == "ready");
        let ready: Vec<_> = tree(app.folder())
            .into_iter()
            .filter(is_ready_file)
            .collect();
        assert_eq!(ready.len(), 1);
        assert_eq!(mode(&ready[0]), 0o600, "umask {umask}: the ready file");
        let mut api = Api::new(server.http().unwrap(), token.trim());
        let made = api.create("https://example.com/").unwrap().json();
        let path = format!("/{}", made["key"].as_str().unwrap());
        eventually(Duration::from_secs(60), || {
            assert_eq!(api.get(&path).unwrap().status, 302);
            let has_segment = tree(&data.join("spool")).len() > 3;
            has_segment.then_some(()).ok_or("no segment of the spool")
        });
        let names: HashSet<String> = tree(&data)
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect();
        for name in [
            "curt.db",
            "curt.db-wal",
            "curt.db-shm",
            "curt.db.lock",
            "spool",
            "keys",
            "id",
        ] {
            assert!(names.contains(name), "umask {umask}: {name} in {names:?}");
        }
        assert_eq!(open_to_others(&data), [""; 0], "umask {umask}");
        assert_eq!(mode(&data), 0o700, "umask {umask}");
        server.terminate(time_max(STOP_TIME_MAX)).unwrap();

        // An installation from before: what it left open is closed, and the operator hears of it.
        for path in tree(&data) {
            let mode = if path.is_dir() { 0o755 } else { 0o644 };
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        let server = app.start().unwrap();
        assert_eq!(open_to_others(&data), [""; 0], "umask {umask}, again");
        assert_eq!(mode(&list), 0o644, "the operator's own");
        let mut api = Api::new(server.http().unwrap(), token.trim());
        assert_eq!(api.get(&path).unwrap().status, 302);
        let log = server.logs();
        assert!(log.contains("files_tightened"), "{log}");
        server.terminate(time_max(STOP_TIME_MAX)).unwrap();
    }
}
