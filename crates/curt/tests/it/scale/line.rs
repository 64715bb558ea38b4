//! The line of keys as processes: keygen, keysync and servers that share nothing but engines.

use std::collections::HashSet;
use std::time::Duration;

use curt_testkit::http::Client;
use curt_testkit::need;
use curt_testkit::process::Server;

use super::plant::{FRONT, Plant, Shape, Status, stop};
use crate::api::Api;
use crate::metrics::Metrics;
use crate::wait::eventually;

/// Small enough that refills happen, soon enough that a short test sees them.
pub(crate) const SMALL: &[(&str, &str)] = &[
    ("keys.ledger.low", "5000"),
    ("keys.ledger.high", "10000"),
    ("keys.pool.low", "1000"),
    ("keys.pool.high", "3000"),
    ("keys.lease_ttl", "2s"),
    ("keys.tick", "200ms"),
    ("keys.pool.shards_max", "2"),
];

pub(crate) fn metrics(server: &Server) -> Metrics {
    let answer = Client::new(server.admin().unwrap())
        .get("/metrics")
        .unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    Metrics::parse(&answer.text())
}

pub(crate) fn created_from(server: &Server, origin: &str) -> f64 {
    let name = format!("curt_links_created_total{{origin=\"{origin}\"}}");
    metrics(server).get(&name).unwrap_or_default()
}

/// Keys in the buffer of a server, as it says itself.
pub(crate) fn buffered(server: &Server) -> u64 {
    let held = metrics(server).get("curt_keys_held{stage=\"buffered\"}");
    held.unwrap_or_default() as u64
}

#[test]
fn keygen_keysync_and_a_server_work_as_processes_of_their_own_k2() {
    let shape = Shape {
        ledgers: 1,
        pools: 1,
    };
    let plant = need!(Plant::start(shape, SMALL));
    // In the worst order: each waits for what the next one brings.
    let front = plant.process(FRONT);
    let mut api = Api::new(front.http().unwrap(), plant.token());
    let answer = api.create("https://example.com/before").unwrap();
    assert_eq!(answer.status, 201, "a dry supply stops nobody: {answer:?}");
    assert!(created_from(&front, "random") > 0.0);
    let keysync = plant.process(&["keysync"]);
    let keygen = plant.process(&["keygen"]);
    assert!(keygen.http().is_err() && keysync.http().is_err());

    eventually(Duration::from_secs(30), || {
        match metrics(&front).get("curt_keys_held{stage=\"buffered\"}") {
            Some(held) if held > 0.0 => Ok(()),
            other => Err(format!("the ring holds {other:?}: {}", keysync.logs())),
        }
    });
    let mut keys = HashSet::new();
    for number in 0..1_500 {
        let target = format!("https://example.com/{number}");
        let answer = api.create(&target).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        if number % 100 == 0 {
            let followed = api.follow(&key).unwrap();
            assert_eq!(followed.header("location"), Some(target.as_str()));
        }
        assert!(keys.insert(key), "K-1");
    }
    assert!(
        created_from(&front, "ledger") >= 1_400.0,
        "{:?}",
        front.logs()
    );

    reconciles(&plant, 0);
    let table = plant.run(&["keys", "status"]);
    for part in ["keys-db-0", "keys-pool-0", "/", "keygen", "leaked"] {
        assert!(table.contains(part), "{part} in\n{table}");
    }
    // In an order in which nobody can hand anything on.
    stop(keygen);
    stop(keysync);
    stop(front);
    let rest = reconciles(&plant, 0);
    assert_eq!(rest.keys("buffered"), Ok(0), "the ring was given back");
    assert_eq!(rest.0["processes"].as_array().map(Vec::len), Some(0));
}

/// Waits until the sums of all processes agree, with at most so many keys lost.
pub(crate) fn reconciles(plant: &Plant, leaked_max: u64) -> Status {
    wait_for_sums(plant, |leaked| leaked <= leaked_max)
}

/// Waits until they agree with exactly so many keys lost. Processes tell what they hold every few seconds: until they have,
/// keys that are on links already still count as theirs, and fewer seem to be lost.
pub(crate) fn reconciles_with(plant: &Plant, leaked: u64) -> Status {
    wait_for_sums(plant, |told| told == leaked)
}

fn wait_for_sums(plant: &Plant, is_expected: impl Fn(u64) -> bool) -> Status {
    eventually(Duration::from_secs(30), || {
        let status = plant.status();
        let leaked = status.keys("leaked")?;
        let is_settled = status.keys("open")? == 0 && status.keys("in_transit")? == 0;
        match status.0["balances"].as_bool() == Some(true) && is_expected(leaked) && is_settled {
            true => Ok(status),
            false => Err(format!("K-2: {}", status.0)),
        }
    })
}
