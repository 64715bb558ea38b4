//! What `/health/…` says is what the server can do now.

use std::net::SocketAddr;
use std::time::Duration;

use curt_testkit::engines::postgres;
use curt_testkit::http::{Client, Response};
use curt_testkit::need;
use curt_testkit::process::App;
use serde_json::Value;

use crate::alone::Company;
use crate::wait::eventually;

const SEEN_WITHIN: Duration = Duration::from_secs(60);

fn ask(address: SocketAddr, path: &str) -> Response {
    Client::new(address).get(path).unwrap()
}

/// Waits until the answer has this status, and returns it.
pub(crate) fn wait_for_status(address: SocketAddr, path: &str, status: u16) -> Value {
    eventually(SEEN_WITHIN, || {
        let answer = ask(address, path);
        match answer.status == status {
            true => Ok(answer.json().unwrap()),
            false => Err(format!("{path}: {} {}", answer.status, answer.text())),
        }
    })
}

#[test]
fn a_server_without_its_database_is_not_ready_until_it_is_back() {
    let _company = Company::join();
    let mut database = need!(postgres::Server::start());
    let app = App::new(env!("CARGO_BIN_EXE_curt"))
        .unwrap()
        .ready_within(Duration::from_secs(120))
        .setting("store.links", database.url("postgres"))
        .setting("server.drain_delay", "0s");
    let server = app.start().unwrap();
    let (http, admin) = (server.http().unwrap(), server.admin().unwrap());
    wait_for_status(http, "/health/create", 200);
    assert_eq!(ask(http, "/health/ready").status, 200);

    database.stop().unwrap();
    for path in ["/health/ready", "/health/create"] {
        let public = wait_for_status(http, path, 503);
        assert_eq!(public["status"], "unavailable");
        assert!(!public.to_string().contains("reason"), "{public}");
        let operators = wait_for_status(admin, path, 503).to_string();
        assert!(operators.contains("127.0.0.1"), "{operators}");
    }
    assert_eq!(ask(http, "/health/live").status, 200);

    database.restart().unwrap();
    // Links can be read before they can be created, and created before clicks are counted again: until then `degraded`.
    for path in ["/health/create", "/health/ready"] {
        eventually(SEEN_WITHIN, || match wait_for_status(http, path, 200) {
            health if health["status"] == "ok" => Ok(()),
            health => Err(format!("{path}: {health}")),
        });
    }
}
