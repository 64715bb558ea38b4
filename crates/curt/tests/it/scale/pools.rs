//! The side that creates links: it draws from the fullest pool shard, does without one that is dead, and gives back what
//! it did not use.

use std::time::Duration;

use curt_testkit::need;
use curt_testkit::process::Server;

use super::line::{SMALL, created_from, metrics};
use super::plant::{FRONT, Plant, Shape, stop};
use crate::api::Api;
use crate::wait::eventually;

const SHARDS: Shape = Shape {
    ledgers: 1,
    pools: 3,
};
/// What each pool is filled to at least.
const FULL: u64 = 2_900;
/// What a ring takes in.
const RING: u64 = 800;

/// Fills the pools with so many keys, and leaves nobody who would refill them.
fn fill(plant: &Plant, depths: [u64; 3]) {
    let line = [plant.process(&["keygen"]), plant.process(&["keysync"])];
    eventually(Duration::from_secs(60), || {
        match (0..3).all(|shard| plant.depth(shard) >= FULL) {
            true => Ok(()),
            false => Err("the pools are filling"),
        }
    });
    line.into_iter().for_each(stop);
    for (shard, depth) in depths.into_iter().enumerate() {
        plant.trim(shard, depth);
    }
}

fn ring(front: &Server) -> u64 {
    let held = metrics(front).get("curt_keys_held{stage=\"buffered\"}");
    held.unwrap_or_default() as u64
}

fn wait_for_full_ring(front: &Server) {
    eventually(Duration::from_secs(30), || match ring(front) {
        RING => Ok(()),
        held => Err(format!("the ring holds {held}: {}", front.logs())),
    });
}

#[test]
fn a_server_draws_from_the_fullest_shard_survives_a_dead_one_and_gives_its_keys_back_k2() {
    let more = [("keys.pool.shards_max", "0"), ("keys.pool.low", "2900")];
    let settings = [SMALL, &more].concat();
    let mut plant = need!(Plant::start(SHARDS, &settings));
    fill(&plant, [FULL, 1_800, 900]);
    let front = plant.process(FRONT);
    wait_for_full_ring(&front);
    let depths = |plant: &Plant| [0, 1, 2].map(|shard| plant.depth(shard));
    assert_eq!(depths(&plant), [FULL - RING, 1_800, 900], "the fullest");

    plant.pools[0].kill().unwrap();
    let mut api = Api::new(front.http().unwrap(), plant.token());
    let created = 500;
    for number in 0..created {
        let target = format!("https://example.com/{number}");
        assert_eq!(api.create(&target).unwrap().status, 201);
    }
    // What a server says of its ring is a moment old.
    let (held, rest) = eventually(Duration::from_secs(30), || {
        let (held, rest) = (ring(&front), plant.depth(1));
        match held >= 400 && held + created == RING + 1_800 - rest {
            true => Ok((held, rest)),
            false => Err(format!(
                "ring {held}, next fullest {rest}: {}",
                front.logs()
            )),
        }
    });
    assert_eq!(created_from(&front, "ledger"), 500.0, "{}", front.logs());
    assert_eq!(plant.depth(2), 900, "one shard per refill");

    // The dead shard cannot take the ring back; the next one does.
    stop(front);
    assert_eq!(plant.depth(1) + plant.depth(2), rest + 900 + held);
}
