//! Limits that three servers count together in Redis, and what they allow without it.

use std::thread;
use std::time::Duration;

use curt_testkit::engines::redis;
use curt_testkit::http::{Connection, Request};
use curt_testkit::need;
use serde_json::json;

use super::fleet::{Fleet, SERVERS};
use crate::length::length;
use crate::wait::eventually;

/// Requests that may come at once; hours pass until there are more.
const BURST: usize = 30;
const CLICKS: usize = 400;

/// Sends the request to all servers from several clients each, `each` times per client, and counts the answers with this
/// status. All others must be 429.
fn count_at_all(fleet: &Fleet, request: &Request, granted: u16, each: usize) -> usize {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..3 * SERVERS)
            .map(|client| {
                scope.spawn(move || {
                    let server = fleet.http(client % SERVERS);
                    let mut connection = Connection::open(server).unwrap();
                    let mut count = 0;
                    for _ in 0..each {
                        let answer = connection.send(request).unwrap();
                        match answer.status {
                            429 => assert!(answer.header("retry-after").is_some()),
                            status => {
                                assert_eq!(status, granted, "{}", answer.text());
                                count += 1;
                            }
                        }
                    }
                    count
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    })
}

fn create_with(token: &str) -> Request {
    let target = json!({ "target": "https://example.com/limited" });
    Request::post("/api/v1/links").bearer(token).json(&target)
}

/// Scripts that Redis has run.
fn scripts_run(redis: &redis::Server) -> u64 {
    let stats = redis.run_command(&["INFO", "commandstats"]).unwrap();
    let calls = stats.lines().filter_map(|line| {
        let counted = line.strip_prefix("cmdstat_evalsha:calls=")?;
        counted.split(',').next()?.parse::<u64>().ok()
    });
    calls.sum()
}

#[test]
fn three_servers_allow_together_what_one_would() {
    let redis = need!(redis::Server::start());
    let url = redis.url();
    let mut redis = redis;
    let fleet = need!(Fleet::start(&[
        ("store.quotas", &url),
        // The machine may be busy: only an engine that is away is to count as such.
        ("limits.shared_timeout", "30s"),
        ("limits.creations_per_key", &format!("{BURST}/240h")),
        ("limits.redirections_per_user", &format!("{CLICKS}/240h")),
    ]));
    for round in 0..length(1, 10) {
        let token = fleet.new_token(&format!("round-{round}"));
        let made = count_at_all(&fleet, &create_with(&token), 201, 10);
        println!("{made} of {BURST} links made at {SERVERS} servers");
        assert!((BURST..=BURST + 1).contains(&made), "{made}");
    }

    let mut connection = Connection::open(fleet.http(0)).unwrap();
    let token = fleet.new_token("clicks");
    let made = connection.send(&create_with(&token)).unwrap();
    let key = made.json().unwrap()["key"].as_str().unwrap().to_owned();
    let before = scripts_run(&redis);
    let each = 2 * CLICKS / SERVERS;
    let followed = count_at_all(&fleet, &Request::get(&format!("/{key}")), 302, each);
    let asked = scripts_run(&redis) - before;
    let clicks = 3 * SERVERS * each;
    println!("{followed} of {CLICKS} clicks of {clicks} granted, with {asked} questions to Redis");
    assert!(followed <= CLICKS + 1, "{followed}");
    assert!(followed >= CLICKS * 8 / 10, "{followed}");
    assert!(asked < clicks as u64 / 5, "{asked} of {clicks}");
    for number in 0..SERVERS {
        assert_eq!(fleet.metric(number, "curt_quotas_degraded"), Some(0.0));
    }

    redis.kill().unwrap();
    let token = fleet.new_token("degraded");
    let made = count_at_all(&fleet, &create_with(&token), 201, 20);
    println!("{made} links made at {SERVERS} servers without Redis");
    assert!(made <= SERVERS * BURST, "{made}");
    assert!(made >= BURST, "nobody is refused for its absence: {made}");
    for number in 0..SERVERS {
        assert_eq!(fleet.metric(number, "curt_quotas_degraded"), Some(1.0));
        let logs = fleet.server(number).logs();
        assert!(logs.contains("quotas_degraded"), "{logs}");
    }

    redis.restart().unwrap();
    let ask = create_with(&fleet.new_token("again"));
    eventually(Duration::from_secs(30), || {
        let _asked = count_at_all(&fleet, &ask, 201, 1);
        let degraded: f64 = (0..SERVERS)
            .map(|number| fleet.metric(number, "curt_quotas_degraded").unwrap())
            .sum();
        match degraded == 0.0 {
            true => Ok(()),
            false => Err(format!("{degraded} servers")),
        }
    });
}
