//! Clients that are slow, or do nothing: they cost little, they are cut off, and the others do not notice.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::{Connection, Request};
use curt_testkit::skipped;
use curt_testkit::stop::SetOnDrop;

use crate::length::{length, time_max};
use crate::site::Site;
use crate::wait::eventually;

/// What is promised with the default settings.
const CUT_WITHIN: Duration = Duration::from_secs(10);
/// Between two bytes of a dribbling client: often enough that no pause between bytes could be the reason.
const DRIBBLE: Duration = Duration::from_millis(250);
const DRIBBLERS: usize = 100;
/// Connections that warm a server up, too few to hide what many cost.
const FIRST_CONNECTIONS: usize = 100;
/// What one idle connection may cost the server.
const IDLE_BYTES_MAX: f64 = 30.0 * 1_024.0;

/// The longest that anybody else may wait for a redirect while the slow ones dribble.
const OTHERS_WAIT_MAX: Duration = Duration::from_secs(1);

/// Sends an endless head byte by byte until the server hangs up; returns how long that took and what it said.
fn dribble(mut stream: TcpStream) -> (Duration, String) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(DRIBBLE)).unwrap();
    let began = Instant::now();
    let head = b"GET /abc HTTP/1.1\r\nHost: t\r\nX-Slow: ".iter();
    let mut said = Vec::new();
    for byte in head.chain(std::iter::repeat(&b'x')) {
        let gone = stream.write_all(&[*byte]).is_err();
        let mut buffer = [0; 2_048];
        // The wait for an answer is the pause between two bytes.
        let closed = match stream.read(&mut buffer) {
            Ok(0) => true,
            Ok(count) => {
                said.extend_from_slice(&buffer[..count]);
                false
            }
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ),
        };
        if gone || closed {
            break;
        }
        assert!(
            began.elapsed() < time_max(3 * CUT_WITHIN),
            "a slow client is never cut off"
        );
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    (began.elapsed(), said)
}

/// A connection that the API has answered on before.
fn after_api_request(addr: SocketAddr) -> TcpStream {
    let mut connection = Connection::open(addr).unwrap();
    let answer = connection.send(&Request::get("/health/live")).unwrap();
    assert_eq!(answer.status, 200);
    connection.stream().try_clone().unwrap()
}

#[test]
fn a_dribbled_head_is_cut_off_and_nobody_else_notices() {
    let site = Site::start(&[]);
    let addr = site.http();
    let key = site.api().create("https://example.com/").unwrap().json()["key"].clone();
    let key = key.as_str().unwrap();
    let over = AtomicBool::new(false);
    let (cuts, clicks) = thread::scope(|scope| {
        let slow: Vec<_> = (0..DRIBBLERS)
            .map(|number| {
                let used = number % 2 == 1;
                scope.spawn(move || {
                    let stream = match used {
                        true => after_api_request(addr),
                        false => TcpStream::connect(addr).unwrap(),
                    };
                    (used, dribble(stream))
                })
            })
            .collect();
        let visitor = scope.spawn(|| click_until(&site, key, &over));
        let end = SetOnDrop::of(&over);
        let cuts: Vec<_> = slow.into_iter().map(|slow| slow.join().unwrap()).collect();
        drop(end);
        (cuts, visitor.join().unwrap())
    });
    for (used, (after, said)) in &cuts {
        assert!(
            *after <= time_max(CUT_WITHIN),
            "cut off only after {after:?} (API connection: {used})"
        );
        assert!(
            *after >= Duration::from_secs(3),
            "cut off already after {after:?}"
        );
        if !used {
            assert!(said.starts_with("HTTP/1.1 408 "), "{said:?}");
        }
    }
    let latest = |wanted: bool| {
        let of_kind = cuts.iter().filter(|(used, _)| *used == wanted);
        of_kind.map(|(_, (after, _))| *after).max().unwrap()
    };
    println!(
        "slow_clients: {DRIBBLERS} dribblers cut off after {:.1} s at most on fresh connections, {:.1} s on API connections; \
         meanwhile {} redirects, the slowest in {:?}",
        latest(false).as_secs_f64(),
        latest(true).as_secs_f64(),
        clicks.count,
        clicks.slowest
    );
    assert!(
        clicks.count > length(0, 100),
        "only {} redirects meanwhile",
        clicks.count
    );
    assert!(
        clicks.slowest < time_max(OTHERS_WAIT_MAX),
        "a redirect took {:?}",
        clicks.slowest
    );
    let counted = site
        .metrics()
        .matching(|name| name.contains("header_timeout"))
        .len();
    assert_eq!(counted, 1, "cut connections are counted");
}

struct Clicks {
    count: u64,
    slowest: Duration,
}

/// Follows a link again and again, on kept and on fresh connections.
fn click_until(site: &Site, key: &str, over: &AtomicBool) -> Clicks {
    let mut clicks = Clicks {
        count: 0,
        slowest: Duration::ZERO,
    };
    let mut api = site.api();
    while !over.load(Ordering::Relaxed) {
        if clicks.count.is_multiple_of(10) {
            api = site.api();
        }
        let began = Instant::now();
        assert_eq!(api.follow(key).unwrap().status, 302);
        clicks.slowest = clicks.slowest.max(began.elapsed());
        clicks.count += 1;
        thread::sleep(Duration::from_millis(2));
    }
    clicks
}

#[test]
fn a_dribbled_body_is_cut_off() {
    let site = Site::start(&["server.body_timeout=2s"]);
    let mut stream = TcpStream::connect(site.http()).unwrap();
    let head = format!(
        "POST /api/v1/links HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n",
        site.token()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.set_read_timeout(Some(DRIBBLE)).unwrap();
    let began = Instant::now();
    let mut said = Vec::new();
    loop {
        let gone = stream.write_all(b" ").is_err();
        let mut buffer = [0; 2_048];
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !gone => {}
            Err(_) => break,
        }
        assert!(
            began.elapsed() < time_max(CUT_WITHIN),
            "a slow body is never cut off"
        );
    }
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 408 "),
        "{said}"
    );
}

/// How a connection was used before it went idle.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    Redirect,
    Api,
}

#[test]
fn idle_connections_cost_little() {
    let connections = length(5_000, 10_000);
    let wanted = connections as u64 + 500;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(limit) if limit >= wanted => {}
        Ok(limit) => {
            let reason = format!("{limit} open files are allowed, {wanted} are needed");
            return skipped::say("slow_clients", &reason);
        }
        Err(error) => {
            let reason = format!("the limit of open files cannot be raised: {error}");
            return skipped::say("slow_clients", &reason);
        }
    }
    for before in [Before::Nothing, Before::Redirect, Before::Api] {
        // A process for each: what an allocator keeps of the connections before would be free for those after them.
        // A minute is the default; on a busy machine the first may be closed before the last is opened.
        let site = Site::start(&[
            "server.idle_timeout=300s",
            "server.connections_per_address=16000",
        ]);
        let key = site.api().create("https://example.com/").unwrap().json()["key"].clone();
        let key = key.as_str().unwrap();
        // The first ones pay for what all share.
        drop(open(&site, key, before, FIRST_CONNECTIONS));
        open_now(&site, 0..10);
        let base = site.server().resident_bytes().unwrap();
        let idle = open(&site, key, before, connections);
        open_now(&site, connections..usize::MAX);
        let grown = site.server().resident_bytes().unwrap().saturating_sub(base);
        let each = grown as f64 / connections as f64;
        println!(
            "slow_clients: {connections} idle connections after {before:?} cost {:.1} KiB each",
            each / 1_024.0
        );
        assert!(
            each <= IDLE_BYTES_MAX,
            "an idle connection after {before:?} costs {each:.0} bytes"
        );
        assert_eq!(site.api().follow(key).unwrap().status, 302);
        drop(idle);
    }
}

/// Waits until the server has accepted, or let go of, so many connections.
fn open_now(site: &Site, wanted: Range<usize>) {
    eventually(Duration::from_secs(30), || {
        let open = site
            .metrics()
            .get("curt_http_connections")
            .unwrap_or_default();
        match wanted.contains(&(open as usize)) {
            true => Ok(()),
            false => Err(format!("{open} connections are open, not {wanted:?}")),
        }
    });
}

fn open(site: &Site, key: &str, before: Before, connections: usize) -> Vec<Connection> {
    let path = match before {
        Before::Nothing => None,
        Before::Redirect => Some(format!("/{key}")),
        Before::Api => Some("/health/live".to_owned()),
    };
    (0..connections)
        .map(|_| {
            let mut connection = Connection::open(site.http()).unwrap();
            if let Some(path) = &path {
                let answer = connection.send(&Request::get(path)).unwrap();
                assert!(matches!(answer.status, 200 | 302));
            }
            connection
        })
        .collect()
}
