//! Stops under load: every request that was let in is answered.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::engines::haproxy::Balancer;
use curt_testkit::engines::{Port, postgres};
use curt_testkit::http::{Connection, Request};
use curt_testkit::length::{length, time_max};
use curt_testkit::need;
use curt_testkit::process::{App, Server};
use curt_testkit::stop::SetOnDrop;
use serde_json::json;

use crate::alone::Company;
use crate::site::{STOP_TIME_MAX, Site};
use crate::wait::eventually;

const CLIENTS: usize = 24;

/// What clients saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) answered: usize,
    /// Requests that a connection took, and what came instead of the answer.
    pub(crate) failed: Vec<String>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.failed.extend(other.failed);
    }
}

/// Sends one request after the other until told to stop or no connection is let in.
struct ClosedLoop<'a> {
    address: SocketAddr,
    request: &'a Request,
    expected: u16,
    done: &'a AtomicBool,
}

impl ClosedLoop<'_> {
    fn run(&self) -> Seen {
        let mut seen = Seen::default();
        while !self.done.load(Ordering::Relaxed) {
            let Ok(mut connection) = Connection::open(self.address) else {
                break;
            };
            while !self.done.load(Ordering::Relaxed) {
                match connection.send(self.request) {
                    Ok(answer) if answer.status == self.expected => {
                        seen.answered += 1;
                        if !answer.keeps_alive() {
                            break;
                        }
                    }
                    Ok(answer) => {
                        let what = format!("{}: {}", answer.status, answer.text());
                        seen.failed.push(what);
                        break;
                    }
                    Err(error) => {
                        seen.failed.push(error.to_string());
                        break;
                    }
                }
            }
        }
        seen
    }
}

/// Half of the clients create links and half follow one, while `work` is done; then they are told to stop.
pub(crate) fn run_beside_load(
    address: SocketAddr,
    token: &str,
    key: &str,
    work: impl FnOnce(),
) -> Seen {
    let create = Request::post("/api/v1/links")
        .bearer(token)
        .json(&json!({ "target": "https://example.com/made" }));
    let follow = Request::get(&format!("/{key}"));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (request, expected) = match number % 2 {
                    0 => (&create, 201),
                    _ => (&follow, 302),
                };
                let client = ClosedLoop {
                    address,
                    request,
                    expected,
                    done: &done,
                };
                scope.spawn(move || client.run())
            })
            .collect();
        let end = SetOnDrop::of(&done);
        work();
        drop(end);
        let mut seen = Seen::default();
        for client in clients {
            seen.add(client.join().unwrap());
        }
        seen
    })
}

/// A link to follow.
pub(crate) fn create_link(address: SocketAddr, token: &str) -> String {
    let create = Request::post("/api/v1/links")
        .bearer(token)
        .json(&json!({ "target": "https://example.com/followed" }));
    let answer = Connection::open(address).unwrap().send(&create).unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json().unwrap()["key"].as_str().unwrap().to_owned()
}

#[test]
fn stops_under_load_fail_no_request() {
    let mut site = Site::start(&["server.drain_delay=200ms"]);
    let key = create_link(site.http(), site.token());
    let mut seen = Seen::default();
    let stops = length(3, 20);
    for _ in 0..stops {
        let (address, token) = (site.http(), site.token().to_owned());
        seen.add(run_beside_load(address, &token, &key, || {
            thread::sleep(Duration::from_millis(300));
            assert_eq!(site.terminate().code(), Some(0));
        }));
        site.restart();
    }
    println!(
        "{stops} stops: {} answered, {} failed",
        seen.answered,
        seen.failed.len()
    );
    assert!(seen.answered > 0);
    assert!(seen.failed.is_empty(), "{:?}", seen.failed);
}

/// Two servers over one PostgreSQL, each on a port of its own.
struct Pair {
    app: App,
    ports: [Port; 2],
    servers: [Option<Server>; 2],
}

impl Pair {
    fn start(&mut self, number: usize) {
        let listen = format!("server.listen={}", self.ports[number].address());
        let folder = format!("data_dir=data-{number}");
        let arguments = ["--set", &listen, "--set", &folder];
        self.servers[number] = Some(self.app.start_with(&arguments).unwrap());
    }

    fn stop(&mut self, number: usize) {
        let server = self.servers[number].take().unwrap();
        let logs = server.logs();
        let ended = server.terminate(time_max(2 * STOP_TIME_MAX)).unwrap();
        assert_eq!(ended.code(), Some(0), "{logs}");
    }
}

/// The example that is shipped, with the addresses of this test.
fn balance(pair: &Pair, front: &Port) -> anyhow::Result<Balancer> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/haproxy.cfg");
    let mut text = fs::read_to_string(path)?;
    let [one, other] = &pair.ports;
    for (written, meant) in [
        (":80\n", format!("{}\n", front.address())),
        // These servers have none: checks alone are enough.
        (
            " agent-check agent-port 8082 agent-inter 500ms",
            String::new(),
        ),
        ("10.0.0.11:8080", one.address().to_string()),
        ("10.0.0.12:8080", other.address().to_string()),
    ] {
        assert!(text.contains(written), "{written} is not in the example");
        text = text.replace(written, &meant);
    }
    Balancer::start_with(&text)
}

/// Waits until the balancer sends requests of both kinds to this many servers.
fn wait_until_up(balancer: &Balancer, count: usize) {
    eventually(Duration::from_secs(30), || {
        let stats = balancer.run_command("show stat").unwrap();
        let is_up = |backend: &str| {
            let of_backend = |line: &&str| line.starts_with(&format!("{backend},curt"));
            let up = |line: &&str| line.split(',').nth(17) == Some("UP");
            stats.lines().filter(of_backend).filter(up).count() == count
        };
        match is_up("links") && is_up("api") {
            true => Ok(()),
            false => Err(stats.clone()),
        }
    });
}

#[test]
fn a_rolling_restart_behind_haproxy_fails_no_request() {
    let _company = Company::join();
    let server = need!(postgres::shared());
    let database = server.database("rolling").unwrap();
    let app = App::new(env!("CARGO_BIN_EXE_curt"))
        .unwrap()
        .ready_within(Duration::from_secs(120))
        .setting("store.links", database.url())
        // The machine may be busy: only stops are to fail requests.
        .setting("postgres.lookup_timeout", "30s")
        .setting("postgres.write_timeout", "30s")
        .setting("postgres.connect_timeout", "30s")
        .setting("log.level", "warn");
    app.run(&["user", "add", "tests@example.com"]).unwrap();
    let token = app
        .run(&["api-key", "add", "tests", "--user", "tests@example.com"])
        .unwrap();
    let token = token.trim();
    let mut pair = Pair {
        app,
        ports: [Port::free().unwrap(), Port::free().unwrap()],
        servers: [None, None],
    };
    pair.start(0);
    pair.start(1);
    let front = Port::free().unwrap();
    let balancer = need!(balance(&pair, &front));
    wait_until_up(&balancer, 2);
    let key = create_link(front.address(), token);
    let restarts = length(2, 24);
    let seen = run_beside_load(front.address(), token, &key, || {
        for restart in 0..restarts {
            pair.stop(restart % 2);
            pair.start(restart % 2);
            wait_until_up(&balancer, 2);
        }
    });
    println!(
        "{restarts} restarts: {} answered, {} failed",
        seen.answered,
        seen.failed.len()
    );
    assert!(seen.answered > 0);
    assert!(seen.failed.is_empty(), "{:?}", seen.failed);
}
