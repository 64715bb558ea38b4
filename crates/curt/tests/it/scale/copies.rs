//! L-2 with a server whose database answers late, and with one that stood still: what another server deleted is not
//! served by a request that began later than a second after the deletion was acknowledged, and what it made is found
//! by one that did.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::http::{Connection, Request};
use curt_testkit::need;
use curt_testkit::process::{App, Server};
use curt_testkit::stop::SetOnDrop;
use rustix::process::Signal;
use serde_json::json;

use crate::alone::Company;
use crate::api::Api;
use crate::length::length;
use crate::wait::eventually;

const ROLES: &[&str] = &["redirect", "api"];
/// L-2.
const SERVED_MAX: Duration = Duration::from_secs(1);
/// Links that are looked up at the same time: fewer than a server has connections to its database.
const GROUP: usize = 6;
/// Clients of each link: one whose look-up is under way, and some that come after it.
const WATCHERS: usize = 2;
const LOOK_EVERY: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Two servers over one database, the second one behind a line that can be made slow.
struct TwoServers {
    writer: Server,
    reader: Server,
    line: Proxy,
    token: String,
    _apps: [App; 2],
    _database: Database,
    _company: Company,
}

impl TwoServers {
    fn start() -> Result<Self> {
        let company = Company::join();
        let database = shared()?.database("copies")?;
        let url = database.url();
        let (before, name) = url.rsplit_once('/').context("no database in the address")?;
        let (_, address) = before.rsplit_once('@').context("no user in the address")?;
        let line = Proxy::to(address.parse()?)?;
        let late = format!("postgres://postgres@{}/{name}", line.address());
        let app = |links: &str| -> Result<App> {
            let app = App::new(env!("CARGO_BIN_EXE_curt"))?.ready_within(WAIT_MAX * 2);
            let quiet = app
                .setting("store.links", links)
                // Late answers are to arrive.
                .setting("postgres.lookup_timeout", "60s")
                .setting("postgres.connect_timeout", "60s")
                .setting("log.level", "error");
            Ok(quiet
                .setting("limits.misses_per_address", "")
                .setting("server.workers", 1))
        };
        let apps = [app(&url)?, app(&late)?];
        apps[0].run(&["user", "add", "tests@example.com"])?;
        let token = apps[0].run(&["api-key", "add", "tests", "--user", "tests@example.com"])?;
        Ok(Self {
            writer: apps[0].start_with(ROLES)?,
            reader: apps[1].start_with(ROLES)?,
            line,
            token: token.trim().to_owned(),
            _apps: apps,
            _database: database,
            _company: company,
        })
    }

    fn writer(&self) -> Api {
        Api::new(self.writer.http().unwrap(), &self.token)
    }

    fn reader(&self) -> SocketAddr {
        self.reader.http().unwrap()
    }

    fn new_links(&self) -> Vec<String> {
        let mut api = self.writer();
        (0..GROUP)
            .map(|number| {
                let answer = api.create(&format!("https://example.com/{number}"));
                let answer = answer.unwrap();
                assert_eq!(answer.status, 201, "{answer:?}");
                answer.json()["key"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    /// Deletes the links at the other server, and tells when that was acknowledged.
    fn delete(&self, keys: &[String]) -> Vec<Instant> {
        let mut api = self.writer();
        let acknowledged = keys.iter().map(|key| {
            let answer = api.delete(key).unwrap();
            assert_eq!(answer.status, 204, "{answer:?}");
            Instant::now()
        });
        acknowledged.collect()
    }

    /// Opens the connections to the database that so many look-ups at once need.
    fn open_connections(&self) {
        let keys = self.new_links();
        thread::scope(|scope| {
            for key in &keys {
                scope.spawn(|| Api::new(self.reader(), "").follow(key).unwrap());
            }
        });
    }

    /// Waits until the answers to look-ups of every link are held up, `before` others having been.
    fn wait_until_held_up(&self, before: u64) {
        let held_up = || self.line.answers_delayed() - before;
        eventually(WAIT_MAX, || match held_up() {
            answers if answers >= GROUP as u64 => Ok(()),
            answers => Err(format!("{answers} answers held up")),
        });
    }

    fn assert_gone(&self, keys: &[String]) {
        let mut api = Api::new(self.reader(), "");
        for key in keys {
            eventually(WAIT_MAX, || match api.follow(key) {
                Ok(answer) if answer.status == 410 => Ok(()),
                other => Err(format!("{other:?}")),
            });
        }
    }
}

/// An answer, and when its request began.
struct Look {
    began: Instant,
    status: u16,
}

/// Follows the link again and again over connections of its own.
fn watch(address: SocketAddr, key: &str, stop: &AtomicBool) -> Vec<Look> {
    let mut api = Api::new(address, "");
    let mut looks = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let status = api.follow(key).unwrap().status;
        looks.push(Look { began, status });
        thread::sleep(LOOK_EVERY);
    }
    looks
}

fn assert_not_served_late(key: &str, looks: &[Look], acknowledged: Instant) {
    for look in looks {
        let after = look.began.saturating_duration_since(acknowledged);
        let is_late = look.status == 302 && after > SERVED_MAX;
        assert!(!is_late, "L-2: {key} served {after:?} after its deletion");
    }
}

/// Returns how many redirects there were, all in time.
fn delete_while_answers_are_late(servers: &TwoServers, delay: Duration) -> usize {
    let keys = servers.new_links();
    let before = servers.line.answers_delayed();
    servers.line.set(Line::SlowAnswers(delay));
    let stop = AtomicBool::new(false);
    let (looks, acknowledged) = thread::scope(|scope| {
        let watchers: Vec<_> = keys
            .iter()
            .flat_map(|key| [key; WATCHERS])
            .map(|key| {
                let stop = &stop;
                scope.spawn(move || watch(servers.reader(), key, stop))
            })
            .collect();
        let end = SetOnDrop::of(&stop);
        servers.wait_until_held_up(before);
        let acknowledged = servers.delete(&keys);
        thread::sleep(delay + SERVED_MAX + SERVED_MAX / 4);
        drop(end);
        servers.line.set(Line::Sound);
        let looks = watchers.into_iter().map(|watcher| watcher.join().unwrap());
        (looks.collect::<Vec<_>>(), acknowledged)
    });
    let mut redirects = 0;
    for (watcher, looks) in looks.iter().enumerate() {
        let link = watcher / WATCHERS;
        assert_not_served_late(&keys[link], looks, acknowledged[link]);
        redirects += looks.iter().filter(|look| look.status == 302).count();
    }
    servers.assert_gone(&keys);
    redirects
}

#[test]
fn a_deleted_link_is_not_served_from_answers_that_came_late_l2() {
    let servers = need!(TwoServers::start());
    servers.open_connections();
    let delays: &[u64] = length(&[500, 1_500], &[500, 2_000, 4_000]);
    let groups = length(1, 100_usize.div_ceil(GROUP));
    for delay in delays {
        let delay = Duration::from_millis(*delay);
        let redirects: usize = (0..groups)
            .map(|_| delete_while_answers_are_late(&servers, delay))
            .sum();
        let links = groups * GROUP;
        println!("answers {delay:?} late: {links} links deleted, {redirects} redirects in time");
    }
}

fn send(address: SocketAddr, key: &str) -> io::Result<Connection> {
    let mut connection = Connection::open(address)?;
    connection.set_timeout(WAIT_MAX);
    let request = Request::get(&format!("/{key}"));
    connection.write_raw(&request.encode("copies"))?;
    Ok(connection)
}

/// Stops the server while the answers to its look-ups are on the way, deletes the links elsewhere, asks for them while
/// it stands still, and wakes it: it finds the old answers and the new requests at the same moment.
fn delete_while_stopped(servers: &TwoServers, stopped: Duration) {
    let keys = servers.new_links();
    let before = servers.line.answers_delayed();
    servers.line.set(Line::Deaf);
    let address = servers.reader();
    let early: Vec<Connection> = keys.iter().map(|key| send(address, key).unwrap()).collect();
    servers.wait_until_held_up(before);
    servers.reader.signal(Signal::STOP).unwrap();
    servers.line.set(Line::Sound);
    let acknowledged = servers.delete(&keys);
    thread::sleep(stopped);
    let sent = keys.iter().zip(acknowledged).map(|(key, acknowledged)| {
        assert!(acknowledged.elapsed() > SERVED_MAX);
        (key, send(address, key).unwrap())
    });
    let late: Vec<(&String, Connection)> = sent.collect();
    servers.reader.signal(Signal::CONT).unwrap();
    for (key, mut connection) in late {
        let status = connection.read_response("GET").unwrap().status;
        assert_ne!(status, 302, "L-2: {key} served after the stop");
    }
    for mut connection in early {
        connection.read_response("GET").unwrap();
    }
    servers.assert_gone(&keys);
}

#[test]
fn a_deleted_link_is_not_served_by_a_server_that_stood_still_l2() {
    let servers = need!(TwoServers::start());
    servers.open_connections();
    let stopped = length(Duration::from_millis(1_500), Duration::from_secs(3));
    for _ in 0..length(2, 100_usize.div_ceil(GROUP)) {
        delete_while_stopped(&servers, stopped);
    }
}

/// Aliases that were asked for before they were made.
#[test]
fn a_link_is_found_everywhere_a_second_after_it_was_made() {
    let servers = need!(TwoServers::start());
    let mut api = servers.writer();
    for number in 0..length(2, 100) {
        let alias = format!("asked-before-{number}");
        let stop = AtomicBool::new(false);
        let asked = Api::new(servers.reader(), "").follow(&alias).unwrap();
        assert_eq!(asked.status, 404, "{asked:?}");
        let (looks, acknowledged) = thread::scope(|scope| {
            let watcher = scope.spawn(|| watch(servers.reader(), &alias, &stop));
            let end = SetOnDrop::of(&stop);
            let new = json!({ "target": "https://example.com/", "alias": alias });
            let made = api.post("/api/v1/links", &new).unwrap();
            assert_eq!(made.status, 201, "{made:?}");
            let acknowledged = Instant::now();
            thread::sleep(SERVED_MAX + SERVED_MAX / 4);
            drop(end);
            (watcher.join().unwrap(), acknowledged)
        });
        let is_late = |look: &&Look| look.began > acknowledged + SERVED_MAX;
        let late: Vec<u16> = looks.iter().filter(is_late).map(|l| l.status).collect();
        assert!(
            late.iter().all(|status| *status == 302),
            "{alias}: {late:?}"
        );
    }
}
