//! The generator against a server that counts what it really received.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops where its ground gives way"
)]

mod server;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use curt_bench::keys::{KeySet, Pick, target_for};
use curt_bench::load::{
    CreateLoad, Failure, Idle, Limit, LoadError, Plan, RedirectLoad, ServerProcess, Shape, create,
    pipeline, redirect,
};
use server::{Reply, Request, TestServer};

fn target_of(key: &str) -> String {
    target_for(key, 60)
}

fn found(request: &Request) -> Reply {
    Reply::redirect(&target_of(&request.path[1..]))
}

fn load(server: &TestServer, requests: u64) -> RedirectLoad {
    let mut plan = Plan::new(server.addr());
    plan.connections = 4;
    plan.limit = Limit::requests(requests);
    let keys = Arc::new(KeySet::generated(100, 7, 3));
    let mut load = RedirectLoad::new(plan, keys);
    load.target_of = Some(target_of);
    load
}

#[test]
fn it_counts_exactly_what_the_server_saw() {
    for (shape, idle) in [(Shape::Minimal, Idle::Sleep), (Shape::Browser, Idle::Spin)] {
        let server = TestServer::start(found);
        let mut load = load(&server, 5_000);
        load.shape = shape;
        load.plan.idle = idle;
        let report = redirect(&load).unwrap();
        assert_eq!((report.requests, report.failed()), (5_000, 0), "{report}");
        assert_eq!((report.reconnects, report.unsent), (0, 0));
        let seen = server.finish();
        assert_eq!(seen.len(), 5_000);
        assert!(
            seen.iter()
                .all(|request| request.headers == if shape == Shape::Browser { 11 } else { 1 })
        );
    }
}

#[test]
fn pipelined_requests_keep_their_rate_and_are_all_judged() {
    let server = TestServer::start(found);
    let mut load = load(&server, 1);
    load.shape = Shape::Mixed;
    load.plan.own_addresses = true;
    load.plan.rate = Some(5_000.0);
    load.plan.limit = Limit::seconds(0.4);
    let report = pipeline(&load).unwrap();
    assert_eq!(report.failed, 0);
    let seen = server.finish();
    assert_eq!(seen.len() as u64, report.answered);
    // A busy machine sends less, never more.
    assert!((200..=2_000).contains(&report.answered), "{report:?}");
    let heads: HashSet<String> = seen.into_iter().map(|request| request.head).collect();
    assert!(heads.len() > 50, "{}", heads.len());

    let server = TestServer::start(|_| Reply::redirect("https://elsewhere.example/"));
    let mut load = self::load(&server, 1);
    load.plan.rate = Some(5_000.0);
    load.plan.limit = Limit::seconds(0.2);
    let report = pipeline(&load).unwrap();
    assert!(report.failed > 0 && report.answered > 0, "{report:?}");
}

#[test]
fn a_run_by_time_loses_no_request_at_its_end() {
    let server = TestServer::start(found);
    let mut load = load(&server, 1);
    load.plan.limit = Limit::seconds(0.2);
    let report = redirect(&load).unwrap();
    assert!(report.requests > 100, "{report}");
    assert!(report.elapsed >= Duration::from_millis(200));
    assert_eq!(server.finish().len() as u64, report.requests);
}

#[test]
fn in_order_asks_for_every_key_once() {
    let server = TestServer::start(found);
    let mut load = load(&server, 100);
    load.pick = Pick::InOrder;
    redirect(&load).unwrap();
    let asked: HashSet<String> = server.finish().into_iter().map(|seen| seen.path).collect();
    assert_eq!(asked.len(), 100);
}

#[test]
fn answers_that_come_in_pieces_are_put_together() {
    let server = TestServer::start(|request| found(request).in_pieces(7));
    let report = redirect(&load(&server, 50)).unwrap();
    assert_eq!((report.requests, report.failed()), (50, 0), "{report}");
}

#[test]
fn failures_are_counted_by_reason_and_the_rest_still_counts() {
    let server = TestServer::start(|request| match request.number {
        1..=3 => Reply::new(503, &[], ""),
        4 => Reply::new(302, &[], ""),
        5..=6 => Reply::raw("not http at all\r\n\r\n"),
        _ => found(request),
    });
    let report = redirect(&load(&server, 200)).unwrap();
    assert_eq!(report.failures.get(&Failure::Status(503)), Some(&3));
    assert_eq!(report.failures.get(&Failure::NoLocation), Some(&1));
    assert_eq!(report.failures.get(&Failure::Malformed), Some(&2));
    assert_eq!((report.requests, report.failed()), (194, 6), "{report}");
    assert_eq!(report.reconnects, 2);
}

#[test]
fn a_redirect_to_another_links_target_is_a_failure() {
    let server = TestServer::start(|_| Reply::redirect("https://elsewhere.example/"));
    let report = redirect(&load(&server, 200)).unwrap();
    // One answer in 64 is compared whole.
    assert_eq!(
        report.failures.get(&Failure::WrongLocation),
        Some(&4),
        "{report}"
    );
}

#[test]
fn a_server_that_closes_politely_costs_a_connection_and_no_request() {
    let server = TestServer::start(|request| {
        let reply = found(request);
        if request.number % 10 == 0 {
            reply.closing()
        } else {
            reply
        }
    });
    let report = redirect(&load(&server, 100)).unwrap();
    assert_eq!((report.requests, report.failed()), (100, 0), "{report}");
    assert_eq!(report.reconnects, 10);
}

#[test]
fn a_server_that_drops_the_connection_costs_the_request() {
    let server = TestServer::start(|request| match request.number {
        20 => Reply::drop_connection(),
        _ => found(request),
    });
    let report = redirect(&load(&server, 100)).unwrap();
    assert_eq!(report.failures.get(&Failure::Lost), Some(&1), "{report}");
    assert_eq!(report.requests, 99);
}

/// One connection, 5 ms per answer, but a request falls due every millisecond: the queue grows by four requests with
/// every answer, and a generator that starts its clock when it sends would report 5 ms throughout.
fn overloaded(server: &TestServer) -> RedirectLoad {
    let mut load = load(server, 100);
    load.plan.connections = 1;
    load.plan.rate = Some(1_000.0);
    load
}

#[test]
fn open_loop_latency_includes_the_wait_before_sending() {
    let server = TestServer::start(|request| found(request).after(Duration::from_millis(5)));
    let report = redirect(&overloaded(&server)).unwrap();
    assert_eq!((report.requests, report.unsent), (100, 0), "{report}");
    assert!(report.latency.p50_us > 100_000.0, "{report}");
}

#[test]
fn requests_that_never_left_count_as_waiting_until_the_end() {
    let server = TestServer::start(|request| found(request).after(Duration::from_millis(5)));
    let mut load = overloaded(&server);
    load.plan.limit = Limit::seconds(0.3);
    let report = redirect(&load).unwrap();
    assert_eq!(report.requests + report.unsent, 300, "{report}");
    assert!(report.unsent > 200, "{report}");
    assert!(report.latency.p50_us > 50_000.0, "{report}");
}

#[test]
fn open_loop_keeps_its_rate_when_the_server_keeps_up() {
    let server = TestServer::start(found);
    let mut load = load(&server, 1);
    load.plan.limit = Limit::seconds(0.5);
    load.plan.rate = Some(2_000.0);
    let report = redirect(&load).unwrap();
    assert_eq!(report.requests + report.unsent, 1_000, "{report}");
    assert!(report.requests > 500, "{report}");
}

#[test]
fn the_servers_processor_time_is_measured() {
    let server = TestServer::start(found);
    let mut load = load(&server, 2_000);
    load.plan.server = Some(ServerProcess {
        pid: std::process::id(),
        children: false,
    });
    let report = redirect(&load).unwrap();
    let micros = report.server_cpu_us().unwrap();
    assert!((0.5..10_000.0).contains(&micros), "{report}");
}

#[test]
fn single_creates_carry_the_key_and_give_back_what_was_made() {
    let server = TestServer::start(|request| {
        assert!(request.head.contains("Authorization: Bearer secret\r\n"));
        let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body["target"].as_str().unwrap().len(), 60);
        Reply::new(201, &[], &format!("{{\"key\":\"k{}\"}}", request.number))
    });
    let mut plan = Plan::new(server.addr());
    plan.connections = 3;
    plan.limit = Limit::requests(30);
    let mut load = CreateLoad::new(plan, "secret");
    load.keep_keys = true;
    let report = create(&load).unwrap();
    assert_eq!((report.load.items, report.load.failed()), (30, 0));
    assert_eq!(report.keys.iter().collect::<HashSet<_>>().len(), 30);
    let bodies: HashSet<String> = server.finish().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies.len(), 30, "every link has a target of its own");
}

/// A bulk answer in the server's shape: `made` links, then refusals.
fn bulk_answer(request: &Request, made: usize) -> Reply {
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    let results: Vec<serde_json::Value> = (0..body["links"].as_array().unwrap().len())
        .map(|place| {
            if place < made {
                let key = format!("{}-{place}", request.number);
                serde_json::json!({"status": 201, "link": {"key": key, "target": "x".repeat(200)}})
            } else {
                serde_json::json!({"status": 409, "problem": {"type": "alias-taken"}})
            }
        })
        .collect();
    Reply::new(
        200,
        &[],
        &serde_json::json!({"results": results}).to_string(),
    )
}

#[test]
fn bulk_creates_larger_than_any_socket_buffer_are_counted_by_the_link() {
    let server = TestServer::start(|request| bulk_answer(request, 1_000));
    let mut plan = Plan::new(server.addr());
    plan.connections = 2;
    plan.limit = Limit::requests(5);
    let mut load = CreateLoad::new(plan, "secret");
    load.bulk = Some(1_000);
    load.target_bytes = 2_000;
    load.keep_keys = true;
    let report = create(&load).unwrap();
    assert_eq!(
        (report.load.requests, report.load.items),
        (5, 5_000),
        "{}",
        report.load
    );
    assert_eq!(report.keys.iter().collect::<HashSet<_>>().len(), 5_000);
    assert!(
        server
            .finish()
            .iter()
            .all(|seen| seen.path == "/api/v1/links/bulk")
    );
}

#[test]
fn a_bulk_request_with_refusals_is_a_failure() {
    let server = TestServer::start(|request| bulk_answer(request, 9));
    let mut plan = Plan::new(server.addr());
    plan.limit = Limit::requests(3);
    let mut load = CreateLoad::new(plan, "secret");
    load.bulk = Some(10);
    let report = create(&load).unwrap().load;
    assert_eq!(report.failures.get(&Failure::Refused), Some(&3), "{report}");
    assert_eq!(report.items, 0);
}

fn refused(addr: SocketAddr) -> LoadError {
    let keys = Arc::new(KeySet::generated(1, 7, 0));
    redirect(&RedirectLoad::new(Plan::new(addr), keys)).unwrap_err()
}

#[test]
fn only_loopback_is_ever_loaded() {
    for addr in ["192.0.2.1:80", "[2001:db8::1]:80", "0.0.0.0:80"] {
        let error = refused(addr.parse().unwrap());
        assert!(
            matches!(error, LoadError::NotLoopback(_)),
            "{addr}: {error}"
        );
    }
}

#[test]
fn everything_is_bounded() {
    let server = TestServer::start(found);
    for change in [
        (|load| load.plan.connections = 0) as fn(&mut RedirectLoad),
        |load| load.plan.connections = 1_000_000,
        |load| load.plan.limit.duration = Duration::from_secs(86_400),
        |load| load.plan.limit.duration = Duration::ZERO,
        |load| load.plan.rate = Some(f64::NAN),
        |load| load.plan.rate = Some(f64::INFINITY),
    ] {
        let mut load = load(&server, 1);
        change(&mut load);
        let error = redirect(&load).unwrap_err();
        assert!(matches!(error, LoadError::OutOfBounds { .. }), "{error}");
    }
    let mut empty = load(&server, 1);
    empty.keys = Arc::default();
    assert!(matches!(redirect(&empty), Err(LoadError::NoKeys)));
}

#[test]
fn a_server_that_is_not_there_is_an_error_and_not_a_run() {
    let gone = TestServer::start(found);
    let addr = gone.addr();
    gone.finish();
    assert!(matches!(refused(addr), LoadError::Connect { .. }));
}

/// Runs `curt-bench` and returns what it printed, and what it complained of.
fn run(arguments: &[&str]) -> (bool, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_curt-bench"));
    let output = command.args(arguments).output().unwrap();
    let [printed, complaint] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.success(), printed, complaint)
}

#[test]
fn the_commands_load_a_server() {
    let server = TestServer::start(|request| match request.path.as_str() {
        "/api/v1/links/bulk" => bulk_answer(request, 10),
        _ => found(request),
    });
    let url = format!("http://{}", server.addr());
    let common = [
        "--url",
        &url,
        "--seconds",
        "1",
        "--api-key",
        "secret",
        "--json",
    ];
    let bulk = [&["create", "--bulk", "10", "--requests", "3"], &common[..]].concat();
    let (kept, printed, complaint) = run(&bulk);
    assert!(
        kept && printed.contains("\"items\": 30"),
        "{printed}{complaint}"
    );
    let follow = [
        &["redirect", "--links", "10", "--requests", "40"],
        &common[..],
    ]
    .concat();
    let (kept, printed, complaint) = run(&follow);
    assert!(
        kept && printed.contains("\"requests\": 40"),
        "{printed}{complaint}"
    );
    let (kept, _, complaint) = run(&[
        "redirect",
        "--url",
        "http://192.0.2.1:80/",
        "--api-key",
        "x",
    ]);
    assert!(!kept && complaint.contains("loopback"), "{complaint}");
}
