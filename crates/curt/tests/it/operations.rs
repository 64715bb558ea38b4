//! What an operator sees of a running server: metrics, the access log, its size.

use std::fs;
use std::time::Duration;

use curt_testkit::http::{Client, Request};
use rustix::process::Signal;
use serde_json::Value;

use crate::site::Site;
use crate::wait::eventually;

fn new_link(site: &Site) -> String {
    let answer = site.api().create("https://example.com/").unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["key"].as_str().unwrap().to_owned()
}

#[test]
fn metrics_tell_of_process_build_database_and_every_redirect() {
    let site = Site::start(&[]);
    let key = new_link(&site);
    let mut api = site.api();
    for _ in 0..10 {
        assert_eq!(api.follow(&key).unwrap().status, 302);
    }
    // Redirects are counted some ticks later.
    let metrics = eventually(Duration::from_secs(30), || {
        let metrics = site.metrics();
        match metrics.get("curt_redirect_seconds_count") {
            Some(10.0) => Ok(metrics),
            other => Err(format!("{other:?} redirects timed")),
        }
    });
    let get = |name: &str| metrics.get(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(get("curt_redirect_seconds_bucket{le=\"+Inf\"}"), 10.0);
    assert!(get("curt_redirect_seconds_sum") > 0.0);
    assert!(get("process_cpu_seconds_total") > 0.0);
    assert!(get("process_resident_memory_bytes") > 1e6);
    assert!(get("process_open_fds") > 3.0);
    assert!(get("process_max_fds") >= get("process_open_fds"));
    assert!(get("process_threads") > 1.0);
    assert!(get("process_start_time_seconds") > 1.7e9);
    assert!(get("curt_database_bytes{database=\"links\",file=\"data\"}") > 4096.0);
    assert_eq!(get("curt_purge_backlog"), 0.0);
    let build = metrics.matching(|name| name.starts_with("curt_build_info{"));
    assert!(
        build.len() == 1 && build[0].0.contains("version="),
        "{build:?}"
    );

    let mut admin = Client::new(site.server().admin().unwrap());
    let index = admin.get("/").unwrap();
    assert_eq!(index.status, 200);
    for path in ["/metrics", "/health", "/health/live", "/health/ready"] {
        assert!(index.text().contains(path), "{path}");
        assert_eq!(admin.get(path).unwrap().status, 200, "{path}");
    }
    let help = admin.get("/metrics").unwrap().text();
    for line in help.lines().filter(|line| line.starts_with("# HELP")) {
        assert!(line.ends_with('.') && !line.contains("(K-"), "{line}");
    }
}

#[test]
fn refusals_and_failed_sign_ins_are_counted() {
    let site = Site::start(&[
        "server.anonymous_create=true",
        "limits.creations_per_address=1/1h",
    ]);
    let mut visitor = crate::api::Api::new(site.http(), "");
    assert_eq!(visitor.create("https://example.com/").unwrap().status, 201);
    assert_eq!(visitor.create("https://example.com/").unwrap().status, 429);
    let wrong = serde_json::json!({ "email": "tests@example.com", "password": "not this one" });
    let answer = visitor.post("/api/v1/sessions", &wrong).unwrap();
    assert_eq!(answer.status, 401, "{}", answer.text());
    let metrics = site.metrics();
    let refused = metrics.get("curt_limit_refusals_total{limit=\"create\"}");
    assert_eq!(refused, Some(1.0));
    assert_eq!(metrics.get("curt_sign_in_failures_total"), Some(1.0));
}

#[test]
fn the_access_log_has_every_answer_and_can_be_rotated() {
    let settings = [
        "log.access=all",
        "log.access_file=access.log",
        "log.format=json",
    ];
    let mut site = Site::start(&settings);
    let key = new_link(&site);
    let mut api = site.api();
    let click = Request::get(&format!("/{key}?secret=1"))
        .header("User-Agent", "a \"browser\"")
        .header("Referer", "https://blog.example/");
    assert_eq!(api.send(&click).unwrap().status, 302);
    assert_eq!(api.follow("nothing-here").unwrap().status, 404);
    let file = site.folder().join("access.log");
    let lines = |count: usize| {
        eventually(Duration::from_secs(30), || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let parsed: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            match parsed.len() == count {
                true => Ok(parsed),
                false => Err(text),
            }
        })
    };
    let logged = lines(3);
    let (created, followed, missed) = (&logged[0], &logged[1], &logged[2]);
    assert_eq!(created["method"], "POST");
    assert_eq!(created["path"], "/api/v1/links");
    assert_eq!(created["status"], 201);
    assert!(
        created["user"].is_u64() && created["request_id"].is_string(),
        "{created}"
    );
    assert_eq!(followed["path"], format!("/{key}"), "without the query");
    assert_eq!(followed["status"], 302);
    assert_eq!(followed["address"], "127.0.0.1");
    assert_eq!(followed["agent"], "a \"browser\"");
    assert_eq!(followed["referrer"], "https://blog.example/");
    assert!(followed["micros"].is_u64(), "{followed}");
    assert_eq!(missed["status"], 404);

    // As logrotate does it.
    fs::rename(&file, site.folder().join("access.log.1")).unwrap();
    site.server().signal(Signal::HUP).unwrap();
    eventually(Duration::from_secs(30), || {
        file.exists().then_some(()).ok_or("no new file")
    });
    assert_eq!(api.follow(&key).unwrap().status, 302);
    assert_eq!(lines(1)[0]["status"], 302);
    assert!(site.terminate().success());
    let moved = fs::read_to_string(site.folder().join("access.log.1")).unwrap();
    assert_eq!(moved.lines().count(), 3);
}

#[test]
fn an_access_log_of_errors_has_no_redirects() {
    let settings = ["log.access=errors", "log.access_file=access.log"];
    let mut site = Site::start(&settings);
    let key = new_link(&site);
    let mut api = site.api();
    assert_eq!(api.follow(&key).unwrap().status, 302);
    assert_eq!(api.follow("nothing-here").unwrap().status, 404);
    assert!(site.terminate().success());
    let text = fs::read_to_string(site.folder().join("access.log")).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let expected =
        "event=request_answered method=GET path=/nothing-here status=404 address=127.0.0.1";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn an_access_log_that_cannot_be_opened_is_a_wrong_setting() {
    let site = Site::new(&[]);
    fs::write(site.folder().join("none"), "").unwrap();
    let arguments = [
        "serve",
        "--set",
        "log.access=all",
        "--set",
        "log.access_file=none/access.log",
    ];
    let output = site.output(&arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(
        said.contains("log.access_file: none cannot be a folder"),
        "{said}"
    );
}

/// Bounds that a default server stays well below; the code of an unoptimised build is not counted.
#[test]
fn an_idle_server_is_small() {
    const MEMORY_MAX: u64 = 32 << 20;
    const DISK_MAX: u64 = 4 << 20;
    let site = Site::start(&[]);
    let key = new_link(&site);
    assert_eq!(site.api().follow(&key).unwrap().status, 302);
    eventually(Duration::from_secs(60), || {
        let bytes = site.server().anonymous_bytes().unwrap();
        let small = bytes <= MEMORY_MAX;
        small
            .then_some(())
            .ok_or(format!("{bytes} bytes of memory"))
    });
    let data = site.folder().join("data");
    eventually(Duration::from_secs(60), || {
        let files = fs::read_dir(&data).unwrap();
        let bytes: u64 = files
            .map(|entry| entry.unwrap().metadata().unwrap())
            .filter(fs::Metadata::is_file)
            .map(|facts| facts.len())
            .sum();
        let small = bytes <= DISK_MAX;
        small
            .then_some(())
            .ok_or(format!("{bytes} bytes on the disk"))
    });
}
