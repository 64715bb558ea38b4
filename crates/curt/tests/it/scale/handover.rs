//! A process that ends hands its shards over: another takes them at once, and waits for no lock to run out.

use std::time::{Duration, Instant};

use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::process::Server;

use super::line::SMALL;
use super::plant::{Plant, Shape, stop};
use crate::wait::eventually;

const SHARDS: Shape = Shape {
    ledgers: 2,
    pools: 2,
};
/// Far above what a hand-over takes, and far below the life of a lock, in either form of the test.
const AT_ONCE: Duration = Duration::from_secs(6);

/// Whose the shards of one kind are.
fn owners(plant: &Plant, kind: &str) -> Vec<Option<String>> {
    let status = plant.status().0;
    let shards = status[kind].as_array().unwrap().iter();
    shards
        .map(|shard| shard["owner"].as_str().map(str::to_owned))
        .collect()
}

fn wait_until_owned_by(plant: &Plant, kind: &str, server: &Server, time: Duration) {
    let pid = format!("/{} ", server.pid());
    eventually(time, || match owners(plant, kind) {
        all if all.iter().flatten().filter(|o| o.contains(&pid)).count() == all.len() => Ok(()),
        others => Err(format!("{kind} are not of{pid}: {others:?}")),
    });
}

#[test]
fn a_keygen_and_a_keysync_that_end_free_their_shards_for_others_at_once() {
    let settings = [
        SMALL,
        &[
            ("keys.lease_ttl", length("600s", "60s")),
            ("keys.pool.shards_max", "0"),
        ],
    ]
    .concat();
    let plant = need!(Plant::start(SHARDS, &settings));
    for (role, kind) in [("keygen", "ledgers"), ("keysync", "pools")] {
        let first = plant.process(&[role]);
        wait_until_owned_by(&plant, kind, &first, Duration::from_secs(60));
        let second = plant.process(&[role]);
        stop(first);
        let free_at = Instant::now();
        wait_until_owned_by(&plant, kind, &second, AT_ONCE);
        let took = free_at.elapsed();
        println!("scale: {role} taken over {took:?} after the former one ended");
        stop(second);
        assert!(owners(&plant, kind).iter().all(Option::is_none), "{kind}");
    }
}
