use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::{Connection, Request};
use curt_testkit::stop::SetOnDrop;
use rustix::process::Signal;
use serde_json::json;

use super::stderr;
use crate::api::{Api, bulk_results};
use crate::length::time_max;
use crate::site::{STOP_TIME_MAX, Site};
use crate::wait::eventually;

/// How long clients take to send the rest of their requests; well within the grace period.
const HELD_OPEN: Duration = Duration::from_secs(3);

#[test]
fn requests_under_way_finish_when_the_server_is_asked_to_stop() {
    let mut site = Site::start(&[]);
    let http = site.http();
    let link = json!({ "target": "https://example.com/in-flight" });
    let request = Request::post("/api/v1/links")
        .bearer(site.token())
        .json(&link);
    let bytes = request.encode("test");
    // Half of each request is there when the signal comes.
    let (before, after) = bytes.split_at(bytes.len() - 10);
    let mut under_way: Vec<Connection> = (0..20)
        .map(|_| {
            let mut connection = Connection::open(http).unwrap();
            connection.write_raw(before).unwrap();
            connection
        })
        .collect();
    let mut idle = Connection::open(http).unwrap();
    assert_eq!(
        idle.send(&Request::get("/health/live")).unwrap().status,
        200
    );
    site.server().signal(Signal::TERM).unwrap();
    let asked = Instant::now();
    // The listener is closed when the draining has begun.
    eventually(Duration::from_secs(5), || match Connection::open(http) {
        Ok(_) => Err("new connections are still taken"),
        Err(_) => Ok(()),
    });
    // Longer than everything else that a stop does: only these requests keep the server.
    thread::sleep(HELD_OPEN);
    let mut keys = Vec::new();
    for connection in &mut under_way {
        connection.write_raw(after).unwrap();
        let answer = connection.read_response("POST").unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
        keys.push(answer.json().unwrap()["key"].as_str().unwrap().to_owned());
    }
    eventually(Duration::from_secs(5), || match idle.is_closed() {
        true => Ok(()),
        false => Err("an idle connection is kept open"),
    });
    let ended = site.terminate();
    println!(
        "lifecycle: stopped after {:?} with {} requests under way",
        asked.elapsed(),
        keys.len()
    );
    assert_eq!(ended.code(), Some(0));
    assert!(asked.elapsed() <= time_max(STOP_TIME_MAX));
    site.restart();
    let mut api = site.api();
    for key in &keys {
        assert_eq!(api.follow(key).unwrap().status, 302, "L-1: /{key}");
    }
}

#[test]
fn a_stop_under_load_loses_no_link_and_no_key_k2() {
    let mut site = Site::start(&[]);
    for _ in 0..2 {
        let made = load_and_stop(&mut site);
        site.restart();
        let mut api = site.api();
        for key in &made {
            assert_eq!(api.follow(key).unwrap().status, 302, "L-1: /{key}");
        }
    }
    eventually(Duration::from_secs(15), || {
        let metrics = site.metrics();
        let stage = |name: &str| metrics.get(&format!("curt_keys{{stage=\"{name}\"}}"));
        match (stage("minted"), stage("leaked")) {
            (Some(minted), Some(0.0)) if minted > 0.0 => Ok(()),
            seen => Err(format!("K-2: (minted, leaked) is {seen:?}")),
        }
    });
}

/// Creates links over several connections until the server, asked to stop, stops.
fn load_and_stop(site: &mut Site) -> Vec<String> {
    let (http, token) = (site.http(), site.token().to_owned());
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|client| {
                let (stopped, token) = (&stopped, token.as_str());
                scope.spawn(move || {
                    let mut keys = Vec::new();
                    let mut api = Api::new(http, token);
                    while !stopped.load(Ordering::Relaxed) {
                        match create(&mut api, client % 2 == 0) {
                            Ok(more) => keys.extend(more),
                            // A server that stops closes idle connections and takes no new ones.
                            Err(_) => break,
                        }
                    }
                    keys
                })
            })
            .collect();
        let end = SetOnDrop::of(&stopped);
        thread::sleep(Duration::from_millis(400));
        let ended = site.terminate();
        drop(end);
        assert_eq!(ended.code(), Some(0));
        let keys = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        keys.collect()
    })
}

fn create(api: &mut Api, bulk: bool) -> io::Result<Vec<String>> {
    if bulk {
        let targets = vec!["https://example.com/stop".to_owned(); 20];
        return Ok(bulk_results(&api.bulk(&targets)?));
    }
    let answer = api.create("https://example.com/stop")?;
    assert_eq!(answer.status, 201, "{answer:?}");
    Ok(vec![answer.json()["key"].as_str().unwrap().to_owned()])
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let site = Site::start(&[]);
    let began = Instant::now();
    let free = [
        "--set",
        "server.listen=127.0.0.1:0",
        "--set",
        "server.admin_listen=",
    ];
    let second = site.output(&[&["serve"][..], &free].concat());
    let said = stderr(&second);
    assert_eq!(second.status.code(), Some(6), "{said}");
    assert!(
        began.elapsed() < time_max(Duration::from_secs(10)),
        "it took {:?}",
        began.elapsed()
    );
    for part in ["curt.db", "in use", &site.server().pid().to_string()] {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
    assert_eq!(
        site.api().create("https://example.com/").unwrap().status,
        201
    );
}

#[test]
fn a_port_that_is_taken_is_named() {
    let site = Site::start(&[]);
    let other = Site::new(&[]);
    let listen = format!("server.listen={}", site.http());
    let second = other.output(&["serve", "--set", &listen, "--set", "server.admin_listen="]);
    let said = stderr(&second);
    assert_eq!(second.status.code(), Some(1), "{said}");
    for part in ["server.listen", "another process", &site.http().to_string()] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(
        said.lines().count(),
        1,
        "one error and nothing else: {said}"
    );
    assert!(!other.folder().join("data").exists(), "data was made");
    let elsewhere = ["serve", "--set", "server.listen=192.0.2.1:80"];
    let said = stderr(&other.output(&elsewhere));
    assert!(said.contains("no such address"), "{said}");
}

#[test]
fn a_start_that_fails_late_says_why_and_nothing_else_alarms() {
    let site = Site::start(&[]);
    let other = Site::prepared(&[]);
    let spool = site.folder().join("data/spool");
    let spool = format!("store.stream=spool:{}", spool.display());
    let failed = other.output(&[
        "serve",
        "--set",
        "server.listen=127.0.0.1:0",
        "--set",
        "server.admin_listen=",
        "--set",
        &spool,
    ]);
    let said = stderr(&failed);
    assert!(!failed.status.success(), "{said}");
    assert!(said.contains("in use by process"), "{said}");
    for alarm in ["WARN", "ERROR", "cancelled"] {
        assert!(!said.contains(alarm), "{said}");
    }
}

#[test]
fn health_tells_ready_from_alive() {
    let site = Site::start(&[]);
    let admin = site.server().admin().unwrap();
    for address in [site.http(), admin] {
        let mut api = Api::new(address, "");
        for path in ["/health/live", "/health/ready"] {
            let answer = api.get(path).unwrap();
            assert_eq!(
                (answer.status, &answer.json()["status"]),
                (200, &json!("ok"))
            );
        }
    }
    let mut public = site.api();
    assert_eq!(
        public.get("/metrics").unwrap().status,
        404,
        "metrics are for operators"
    );
}
