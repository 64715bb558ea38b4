//! Processes of every role die at random, all the time: nobody is refused, no key is on two links, and every key is
//! accounted for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::need;
use curt_testkit::process::Server;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::crowd::{Crowd, Fronts, Seen, together};
use super::line::{SMALL, reconciles};
use super::plant::{FRONT, Plant, Shape, list, stop};
use crate::length::length;
use crate::wait::eventually;

const CLIENTS: usize = 8;
/// What one kill may cost: the ring of a server.
const LEAK_PER_KILL: u64 = 1_000;

struct Member {
    roles: &'static [&'static str],
    server: Server,
    /// Which of the servers that clients ask it is.
    front: Option<usize>,
}

fn start(plant: &Plant) -> Vec<Member> {
    let roles: [(&'static [&'static str], usize); 3] =
        [(&["keygen"], 4), (&["keysync"], 3), (FRONT, 2)];
    let mut members = Vec::new();
    for (roles, count) in roles {
        for number in 0..count {
            members.push(Member {
                roles,
                server: plant.process(roles),
                front: (roles == FRONT).then_some(number),
            });
        }
    }
    members
}

#[test]
fn four_keygens_three_keysyncs_and_two_servers_die_at_random_k1_k2() {
    let shape = Shape {
        ledgers: 2,
        pools: 4,
    };
    let plant = need!(Plant::start(shape, SMALL));
    let seed = rand::random::<u64>();
    let mut random = StdRng::seed_from_u64(seed);
    let (seconds, every) = length((20, 4), (300, 5));
    let mut members = start(&plant);
    let addresses = members.iter().filter(|member| member.front.is_some());
    let fronts = Fronts::new(addresses.map(|m| m.server.http().unwrap()).collect());
    eventually(Duration::from_secs(60), || {
        match plant.status().keys("pooled")? {
            0..4_000 => Err("the pools are filling".to_owned()),
            _ => Ok(()),
        }
    });

    let (enough, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut killed = Vec::new();
    let seen = thread::scope(|scope| {
        let clients = Crowd {
            fronts: &fronts,
            token: plant.token(),
            clients: CLIENTS,
            pause: Duration::from_millis(5),
            stop: &enough,
            done: &done,
        };
        let clients = clients.start(scope);
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() + Duration::from_secs(every) <= end {
            thread::sleep(Duration::from_secs(every));
            // A server first: those are what a short run must have seen die.
            let victim = match killed.is_empty() {
                true => members.len() - 1,
                false => random.random_range(0..members.len()),
            };
            killed.push(members[victim].roles[0]);
            replace(&plant, &mut members, victim, &fronts);
        }
        enough.store(true, Ordering::Relaxed);
        together(clients)
    });
    judge_what_clients_saw(&plant, &seen);
    let leaked_max = LEAK_PER_KILL * killed.len() as u64;
    reconciles(&plant, leaked_max);
    // Keys go on moving while processes live, and one that moves while we look would be seen twice.
    members.into_iter().for_each(|member| stop(member.server));
    let rest = reconciles(&plant, leaked_max);
    let stored = keys_in_one_place(&plant);
    println!(
        "scale: {} creates by {CLIENTS} clients, {} answered by another server, longest wait {:?}; killed {killed:?}; \
         {} keys minted, {stored} on links, {} leaked (seed {seed})",
        seen.links.len(),
        seen.repeated,
        seen.longest_gap,
        rest.keys("minted").unwrap(),
        rest.keys("leaked").unwrap(),
    );
}

/// Kills the process and starts another in its place.
fn replace(plant: &Plant, members: &mut Vec<Member>, victim: usize, fronts: &Fronts) {
    let Member {
        roles,
        server,
        front,
    } = members.remove(victim);
    server.kill().unwrap();
    let server = plant.process(roles);
    if let Some(front) = front {
        fronts.moved(front, server.http().unwrap());
    }
    members.push(Member {
        roles,
        server,
        front,
    });
}

fn judge_what_clients_saw(plant: &Plant, seen: &Seen) {
    assert!(seen.duplicates.is_empty(), "K-1: {:?}", seen.duplicates);
    assert!(seen.failed.is_empty(), "{:?}", seen.failed);
    assert!(seen.links.len() > 100, "too few creates to say anything");
    for (key, target) in seen.links.iter().take(200) {
        let sql = format!("select target from links where key = '{key}'");
        assert_eq!(plant.links.sql(&sql).unwrap(), *target, "/{key}");
    }
}

/// Looks into the engines themselves: no key is in two places. Returns how many are on links.
fn keys_in_one_place(plant: &Plant) -> usize {
    let lines = |text: String| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let on_links = lines(plant.links.sql("select key from links").unwrap());
    let mut places = vec![("links".to_owned(), on_links)];
    for (shard, ledger) in plant.ledgers.iter().enumerate() {
        let sql =
            "select key from keys where status = 0 union all select unnest(keys) from key_batches";
        places.push((format!("keys-db-{shard}"), lines(ledger.sql(sql).unwrap())));
    }
    for (shard, pool) in plant.pools.iter().enumerate() {
        let keys = pool
            .run_command(&["LRANGE", &list(shard), "0", "-1"])
            .unwrap();
        places.push((format!("keys-pool-{shard}"), lines(keys)));
    }
    let mut known = HashMap::new();
    for (place, keys) in &places {
        for key in keys {
            let other = known.insert(key, place);
            assert_eq!(other, None, "{key} is in {place}, too");
        }
    }
    places[0].1.len()
}
