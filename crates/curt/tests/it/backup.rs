//! Copies of the data: of the files of a quiet server, and by `curt backup` under load.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::site::Site;
use crate::wait::eventually;

/// A link as its maker knows it.
type Made = (String, String);

fn create(site: &Site, count: usize) -> Vec<Made> {
    let mut api = site.api();
    let make = |n| {
        let target = format!("https://example.com/{n}");
        let answer = api.create(&target).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        (key, target)
    };
    (0..count).map(make).collect()
}

fn assert_all_redirect(site: &Site, links: &[Made]) {
    let mut api = site.api();
    for (key, target) in links {
        let answer = api.follow(key).unwrap();
        assert_eq!(answer.status, 302, "{key}: {answer:?}");
        assert_eq!(answer.header("location"), Some(target.as_str()));
    }
}

fn clicks(site: &Site, key: &str) -> u64 {
    let mut api = site.api();
    let answer = api.get(&format!("/api/v1/links/{key}/stats")).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["totals"]["total"].as_u64().unwrap()
}

fn data(site: &Site) -> PathBuf {
    site.folder().join("data")
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `cp data/*.db elsewhere` takes from a server that nobody writes to.
#[test]
fn a_copy_of_the_idle_database_files_alone_is_whole() {
    let site = Site::start(&[]);
    let links = create(&site, 20);
    let followed = &links[..3];
    assert_all_redirect(&site, followed);
    eventually(Duration::from_secs(60), || {
        match clicks(&site, &followed[0].0) {
            1 => Ok(()),
            other => Err(format!("{other} clicks counted")),
        }
    });
    for name in ["curt.db-wal", "clicks.db-wal"] {
        eventually(Duration::from_secs(60), || {
            match fs::metadata(data(&site).join(name)).unwrap().len() {
                0 => Ok(()),
                bytes => Err(format!("{name} has {bytes} bytes")),
            }
        });
    }
    let mut copy = Site::new(&[]);
    fs::create_dir(data(&copy)).unwrap();
    for name in ["curt.db", "clicks.db"] {
        fs::copy(data(&site).join(name), data(&copy).join(name)).unwrap();
    }
    copy.use_token(site.token());
    copy.restart();
    assert_eq!(clicks(&copy, &followed[0].0), 1);
    assert_all_redirect(&copy, &links);
}

/// Makes links until it is told to stop, and notes each when it is acknowledged.
fn keep_creating(site: &Site, made: &Mutex<Vec<Made>>, stop: &AtomicBool) {
    let mut api = site.api();
    while !stop.load(Ordering::Relaxed) {
        let target = format!("https://example.com/{:x}", rand::random::<u64>());
        let answer = api.create(&target).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        made.lock().unwrap().push((key, target));
    }
}

#[test]
fn a_backup_under_load_has_every_link_acknowledged_before_it_began() {
    let site = Site::start(&[]);
    let counted = create(&site, 1).remove(0);
    assert_all_redirect(&site, std::slice::from_ref(&counted));
    eventually(Duration::from_secs(60), || {
        match clicks(&site, &counted.0) {
            1 => Ok(()),
            other => Err(format!("{other} clicks counted")),
        }
    });
    let folder = site.folder().join("backup");
    let name = folder.to_str().unwrap();
    let (made, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let before = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| keep_creating(&site, &made, &stop));
        }
        eventually(Duration::from_secs(60), || {
            let enough = made.lock().unwrap().len() > 200;
            enough.then_some(()).ok_or("few links")
        });
        let before = made.lock().unwrap().clone();
        let told = site.app().run(&["backup", name, "--json"]);
        stop.store(true, Ordering::Relaxed);
        let told: serde_json::Value = serde_json::from_str(&told.unwrap()).unwrap();
        assert!(told["links"].as_u64().unwrap() > 200, "{told}");
        before
    });
    let mut names: Vec<String> = entries(&folder);
    names.sort();
    assert_eq!(names, ["clicks.db", "curt.db"], "nothing but whole files");
    for name in names {
        let mode = fs::metadata(folder.join(&name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let again = site.output(&["backup", name]);
    assert_eq!(again.status.code(), Some(4));
    assert!(stderr(&again).contains("name a new folder"), "{again:?}");

    let running = site.output(&["restore", name]);
    assert_eq!(running.status.code(), Some(4));
    assert!(
        stderr(&running).contains("in use by process"),
        "{running:?}"
    );

    let mut restored = Site::new(&[]);
    let told = restored.app().run(&["restore", name]).unwrap();
    assert!(told.starts_with("restored "), "{told}");
    restored.use_token(site.token());
    restored.restart();
    assert_all_redirect(&restored, &before);
    assert_eq!(clicks(&restored, &counted.0), 1);
    restored.terminate();

    let twice = restored.output(&["restore", name]);
    assert_eq!(twice.status.code(), Some(4));
    let reason = stderr(&twice);
    assert!(reason.contains("there is data already"), "{reason}");
    assert!(reason.contains("data/clicks.db"), "{reason}");
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn what_cannot_be_backed_up_or_restored_is_refused_with_a_way_out() {
    let site = Site::new(&[]);
    fs::create_dir(site.folder().join("other")).unwrap();
    fs::write(site.folder().join("other/curt.db"), "no database").unwrap();
    let remote = ["--set", "store.links=postgres://ada:hidden@db.example/curt"];
    let refused = |arguments: &[&str], code: i32, reason: &str| {
        let output = site.output(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(reason), "{arguments:?}: {said}");
        assert!(!said.contains("hidden"), "{said}");
    };
    refused(&["backup", "copy"], 78, "there is no data here");
    refused(
        &[&["backup", "copy"][..], &remote].concat(),
        4,
        "use pg_dump",
    );
    refused(
        &[&["restore", "copy"][..], &remote].concat(),
        4,
        "pg_restore",
    );
    refused(
        &["restore", "missing"],
        4,
        "is this the folder of a backup?",
    );
    refused(&["restore", "other"], 1, "other/curt.db");
    let left = entries(site.folder());
    let made = |name: &String| name.starts_with("copy") || name == "data";
    assert!(!left.iter().any(made), "{left:?}");

    site.app().run(&["migrate", "--new"]).unwrap();
    refused(&["backup", "other"], 4, "name a new folder");
    refused(
        &["backup", "missing/copy"],
        1,
        "the folder above it must exist",
    );
    refused(&["restore", "other"], 1, "other/curt.db");
}
