//! Clients that begin large requests and do not finish them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use curt_testkit::http::{Connection, Request};
use serde_json::{Value, json};

use super::{Bystander, is_turned_away, yield_to_server};
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

/// Bodies of one attack, and what each says that it has and sends of it.
const BODIES: usize = 150;
const BODY_BYTES: usize = 4_100_000;
const SENT_BYTES: usize = 4_000_000;
/// Threads that send them, together about as fast as a line of a gigabit per second: what is attacked is the memory.
const SENDERS: usize = 8;
const CHUNK_BYTES: usize = 250_000;
const CHUNK_PAUSE: Duration = Duration::from_millis(16);
/// `server.bodies_max`, and what bodies in work may take beyond it.
const BUDGET_BYTES: u64 = (64 + 32) << 20;
/// A quarter of the budget is for one client, three quarters for all large bodies.
const OF_ONE_CLIENT: usize = (16 << 20) / BODY_BYTES;
const OF_ALL_CLIENTS: usize = (48 << 20) / BODY_BYTES;
/// Neither the bystander's address nor an attacker's.
const THIRD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 8));

/// Begins a bulk request and leaves it unfinished, unless the server closes the connection before.
fn begin_bulk(site: &Site, from: IpAddr, token: Option<&str>) -> Connection {
    let mut connection = Connection::open_from(from, site.http()).unwrap();
    let mut head = format!(
        "POST /api/v1/links/bulk HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
         Content-Length: {BODY_BYTES}\r\n"
    );
    if let Some(token) = token {
        head += &format!("Authorization: Bearer {token}\r\n");
    }
    connection
        .write_raw(format!("{head}\r\n").as_bytes())
        .unwrap();
    for _ in 0..SENT_BYTES / CHUNK_BYTES {
        // An error is the server's refusal.
        if connection.write_raw(&[b' '; CHUNK_BYTES]).is_err() {
            break;
        }
        thread::sleep(CHUNK_PAUSE);
    }
    connection
}

fn begin_all(site: &Site, from: fn(usize) -> IpAddr, token: Option<&str>) -> Vec<Connection> {
    let (next, open) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                yield_to_server();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= BODIES {
                        break;
                    }
                    let connection = begin_bulk(site, from(number), token);
                    open.lock().unwrap().push(connection);
                }
            });
        }
    });
    open.into_inner().unwrap()
}

/// Asserts that a server holds at most so many of the bodies, and that the others were refused like this.
fn assert_refused(open: Vec<Connection>, held_max: usize, refusal: (u16, &str)) -> Vec<Connection> {
    let (refused, held): (Vec<_>, Vec<_>) = open
        .into_iter()
        .partition(|connection| is_turned_away(connection.stream()));
    assert!(held.len() <= held_max, "{} bodies are held", held.len());
    // A refusal may be lost when the client is still sending.
    let answers: Vec<_> = refused
        .into_iter()
        .filter_map(|mut connection| connection.read_response("POST").ok())
        .collect();
    let said: Vec<_> = answers
        .iter()
        .map(|answer| (answer.status, answer.json().unwrap()["code"].clone()))
        .collect();
    let (status, code) = refusal;
    let wanted = (status, Value::from(code));
    assert!(said.contains(&wanted), "{wanted:?} is not among {said:?}");
    for (answer, said) in answers.iter().zip(&said) {
        // A body that was let in, before the attacker fell silent.
        let is_timeout = said.0 == 408;
        assert!(is_timeout || *said == wanted, "{said:?}");
        assert!(is_timeout || answer.header("retry-after").is_some());
    }
    held
}

/// A client who has nothing to do with the attack sends a request of some size.
fn assert_served(site: &Site, path: &str, bytes: usize, status: u16) {
    let link = json!({ "target": "https://example.com/" });
    let body = match path.ends_with("bulk") {
        true => json!({ "links": [link] }),
        false => link,
    };
    let body = format!("{body}{}", " ".repeat(bytes));
    let request = Request::post(path)
        .bearer(site.token())
        .body("application/json", body);
    let mut connection = Connection::open_from(THIRD, site.http()).unwrap();
    let answer = connection.send(&request).unwrap();
    assert_eq!(answer.status, status, "{}", answer.text());
}

fn withstand_one_client(name: &str, setting: &str, has_token: bool) {
    let bystander = Bystander::start(&["server.body_timeout=2s", setting]);
    let token = has_token.then(|| bystander.site().new_token("attacker"));
    let held = bystander.withstand(name, BUDGET_BYTES, |site| {
        let from = |_| IpAddr::V4(Ipv4Addr::LOCALHOST);
        let open = begin_all(site, from, token.as_deref());
        let held = assert_refused(open, OF_ONE_CLIENT, (429, "too-many-at-once"));
        assert_served(site, "/api/v1/links/bulk", 3_000_000, 200);
        thread::sleep(length(Duration::ZERO, Duration::from_secs(20)));
        held
    });
    // What was sent before earns no time for silence.
    eventually(Duration::from_secs(30), || {
        let open = held
            .iter()
            .filter(|connection| !is_turned_away(connection.stream()));
        match open.count() {
            0 => Ok(()),
            open => Err(format!("{open} unfinished bodies are still held")),
        }
    });
}

#[test]
fn unfinished_bulk_bodies_of_one_key_hold_little() {
    withstand_one_client(
        "bulk bodies of a key",
        "server.anonymous_create=false",
        true,
    );
}

#[test]
fn unfinished_bulk_bodies_without_credentials_hold_little() {
    withstand_one_client(
        "bulk bodies of nobody",
        "server.anonymous_create=true",
        false,
    );
}

#[test]
fn unfinished_bulk_bodies_of_many_addresses_stay_within_the_budget() {
    let bystander = Bystander::start(&["server.body_timeout=5s", "server.anonymous_create=true"]);
    bystander.withstand("bulk bodies of many", BUDGET_BYTES, |site| {
        let from = |number| IpAddr::V4(Ipv4Addr::new(127, 0, 4, (1 + number % 250) as u8));
        let open = begin_all(site, from, None);
        let held = assert_refused(open, OF_ALL_CLIENTS, (503, "too-many-bodies"));
        // Large bodies leave room for smaller ones.
        assert_served(site, "/api/v1/links", 40_000, 201);
        drop(held);
    });
    let site = bystander.site();
    eventually(Duration::from_secs(30), || {
        match site.metrics().get("curt_http_body_bytes") {
            Some(0.0) => Ok(()),
            held => Err(format!("{held:?} bytes are still held")),
        }
    });
    assert_served(site, "/api/v1/links/bulk", 3_000_000, 200);
}
