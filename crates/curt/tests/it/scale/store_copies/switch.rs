//! From the embedded database to a cluster: the steps of docs/operations.md, on a server in use.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use curt_testkit::process::{App, Server};
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
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        assert!(Instant::now() < deadline, "writes are not refused");
        let target = format!("https://example.com/{}", made.len());
        let answer = api.create(&target).unwrap();
        if answer.status == 503 {
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            return made;
        }
        assert_eq!(answer.status, 201, "{answer:?}");
        made.push((answer.json()["key"].as_str().unwrap().to_owned(), target));
        if made.len().is_multiple_of(3) {
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

fn quick(app: App) -> App {
    app.setting("server.drain_delay", "0s")
        .setting("limits.misses_per_address", "")
        .ready_within(WAIT_MAX)
}

/// A server over files, in use.
struct Embedded {
    app: App,
    server: Server,
    data: PathBuf,
    token: String,
}

impl Embedded {
    fn start() -> Self {
        let app = quick(app());
        app.run(&["migrate", "--new"]).unwrap();
        app.run(&["user", "add", "tests@example.com"]).unwrap();
        let token = ["api-key", "add", "tests", "--user", "tests@example.com"];
        let token = app.run(&token).unwrap().trim().to_owned();
        let server = app.start().unwrap();
        let alias = serde_json::json!({ "target": "https://example.com/", "alias": FOLLOWED });
        let mut api = Api::new(server.http().unwrap(), &token);
        let made = api.post("/api/v1/links", &alias).unwrap();
        assert_eq!(made.status, 201, "{made:?}");
        Self {
            data: app.folder().join("data"),
            app,
            server,
            token,
        }
    }

    /// Copies while the server is written to, makes it read-only, and ends the copy. Returns the links that were made.
    fn copy_and_stop_writes(&self, to: &[String; 2]) -> Vec<(String, String)> {
        let writer = thread::spawn({
            let api = Api::new(self.server.http().unwrap(), &self.token);
            move || write_until_refused(api)
        });
        let from = sqlite(&self.data.join("curt.db"));
        let copy = [
            "copy", "--from", &from, "--to", &to[0], "--to", &to[1], "--follow", "--json",
        ];
        let copy = spawn(&self.app, &copy);
        thread::sleep(length(Duration::from_secs(3), Duration::from_secs(30)));
        fs::write(self.data.join("read-only"), "").unwrap();
        let made = writer.join().unwrap();
        let pid = Pid::from_raw(copy.id().cast_signed()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let report = json_of(&copy.wait_with_output().unwrap());
        for part in ["links", "accounts", "clicks"] {
            assert!(report[part]["checksum"].is_string(), "{part}: {report}");
        }
        let followed = report["links"]["followed"].as_u64();
        assert!(followed.unwrap() > 0, "{report}");
        let left = triggers(&self.data.join("curt.db"));
        assert_eq!(left, 0, "the source still remembers changes");
        made
    }
}

#[test]
fn a_server_is_switched_to_a_cluster_while_redirects_go_on_l1_c1() {
    let _company = Company::join();
    let server = need!(shared());
    let databases = [0; 2].map(|_| server.database("copy").unwrap());
    let urls = databases.each_ref().map(Database::url);
    let old = Embedded::start();
    let address = old.server.http().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let follower = thread::spawn({
        let ended = Arc::clone(&ended);
        move || follow_all_the_time(address, &ended)
    });
    let made = old.copy_and_stop_writes(&urls);
    ended.store(true, Ordering::SeqCst);
    let followed = follower.join().unwrap();
    stop(old.server);
    fs::remove_file(old.data.join("read-only")).unwrap();

    let new = quick(app())
        .setting("store.links", urls.join(","))
        .setting("data_dir", old.data.display());
    let running = new.start().unwrap();
    let mut api = Api::new(running.http().unwrap(), &old.token);
    assert!(made.len() > 20, "too few writes: {}", made.len());
    for (key, target) in &made {
        let answer = api.follow(key).unwrap();
        let location = answer.header("location");
        assert_eq!(location, Some(target.as_str()), "{key}: {answer:?}");
    }
    // The API key is there, too, and links are made.
    assert_eq!(api.create("https://example.com/new").unwrap().status, 201);
    // Those of the last minutes were in the spool, and are counted once (C-1).
    eventually(WAIT_MAX, || match clicks_of(&mut api, FOLLOWED) {
        clicks if clicks == followed => Ok(()),
        clicks => Err(format!("{clicks} of {followed} clicks are counted")),
    });
    stop(running);
}
