//! From the embedded database to a cluster: the steps of docs/operations.md, on a server in use.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use rustix::process::{Pid, Signal, kill_process};

use super::{WAIT_MAX, app, json_of, spawn, sqlite, triggers};
use crate::alone::Company;
use crate::api::Api;
use crate::length::length;
use crate::scale::plant::stop;
use crate::wait::eventually;

const FOLLOWED: &str = "followed";

/// Makes links until the server takes no more writes, and returns them with their targets.
fn write_until_refused(mut api: Api) -> Vec<(String, String)> {
    let mut made: Vec<(String, String)> = Vec::new();
    loop {
        let target = format!("https://example.com/{}", made.len());
        let answer = api.create(&target).unwrap();
        if answer.status == 503 {
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            return made;
        }
        assert_eq!(answer.status, 201, "{answer:?}");
        made.push((answer.json()["key"].as_str().unwrap().to_owned(), target));
        if made.len() % 3 == 0 {
            let (key, target) = &mut made[0];
            let edited = format!("https://example.com/edited/{key}");
            let changes = serde_json::json!({ "target": edited });
            match api.edit(key, &changes).unwrap().status {
                200 => *target = edited,
                status => assert_eq!(status, 503),
            }
        }
    }
}

/// Follows a link until told to stop, without a single other answer, and returns how often.
fn follow_all_the_time(address: SocketAddr, ended: &AtomicBool) -> u64 {
    let mut api = Api::new(address, "");
    let mut followed = 0;
    while !ended.load(Ordering::SeqCst) {
        let answer = api.follow(FOLLOWED).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
        followed += 1;
        thread::sleep(Duration::from_millis(5));
    }
    followed
}

/// All clicks of a link, of whichever class.
fn clicks_of(api: &mut Api, key: &str) -> u64 {
    let answer = api.get(&format!("/api/v1/links/{key}/stats")).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let total = answer.json()["totals"]["total"].as_u64();
    total.unwrap_or_else(|| panic!("{}", answer.text()))
}

#[test]
fn a_server_is_switched_to_a_cluster_while_redirects_go_on_l1_c1() {
    let _company = Company::join();
    let server = need!(shared());
    let databases = [
        server.database("copy").unwrap(),
        server.database("copy").unwrap(),
    ];
    let urls = databases.each_ref().map(Database::url);
    let quick = |app: curt_testkit::process::App| {
        app.setting("server.drain_delay", "0s")
            .setting("limits.misses_per_address", "")
            .ready_within(WAIT_MAX)
    };
    let old = quick(app());
    old.run(&["migrate", "--new"]).unwrap();
    let data = old.folder().join("data");
    old.run(&["user", "add", "tests@example.com"]).unwrap();
    let token = ["api-key", "add", "tests", "--user", "tests@example.com"];
    let token = old.run(&token).unwrap().trim().to_owned();
    let running = old.start().unwrap();
    let address = running.http().unwrap();
    let alias = serde_json::json!({ "target": "https://example.com/", "alias": FOLLOWED });
    let made = Api::new(address, &token)
        .post("/api/v1/links", &alias)
        .unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let ended = Arc::new(AtomicBool::new(false));
    let follower = thread::spawn({
        let ended = Arc::clone(&ended);
        move || follow_all_the_time(address, &ended)
    });
    let writer = thread::spawn({
        let api = Api::new(address, &token);
        move || write_until_refused(api)
    });
    let from = sqlite(&data.join("curt.db"));
    let copy = spawn(
        &old,
        &[
            "copy", "--from", &from, "--to", &urls[0], "--to", &urls[1], "--follow", "--json",
        ],
    );
    thread::sleep(length(Duration::from_secs(3), Duration::from_secs(30)));
    fs::write(data.join("read-only"), "").unwrap();
    let made = writer.join().unwrap();
    let pid = Pid::from_raw(copy.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let report = json_of(&copy.wait_with_output().unwrap());
    for part in ["links", "accounts", "clicks"] {
        assert!(report[part]["checksum"].is_string(), "{part}: {report}");
    }
    assert!(
        report["links"]["followed"].as_u64().unwrap() > 0,
        "{report}"
    );
    assert_eq!(
        triggers(&data.join("curt.db")),
        0,
        "the source still remembers changes"
    );
    ended.store(true, Ordering::SeqCst);
    let followed = follower.join().unwrap();
    stop(running);
    fs::remove_file(data.join("read-only")).unwrap();

    let new = quick(app())
        .setting("store.links", urls.join(","))
        .setting("data_dir", data.display());
    let running = new.start().unwrap();
    let mut api = Api::new(running.http().unwrap(), &token);
    assert!(made.len() > 20, "too few writes: {}", made.len());
    for (key, target) in &made {
        let answer = api.follow(key).unwrap();
        assert_eq!(
            answer.header("location"),
            Some(target.as_str()),
            "{key}: {answer:?}"
        );
    }
    assert_eq!(api.create("https://example.com/new").unwrap().status, 201);
    // Those of the last minutes were in the spool, and are counted once (C-1).
    eventually(WAIT_MAX, || match clicks_of(&mut api, FOLLOWED) {
        clicks if clicks == followed => Ok(()),
        clicks => Err(format!("{clicks} of {followed} clicks are counted")),
    });
    stop(running);
}
