//! Processes of every role die at random, all the time: nobody is refused, no key is on two links, and every key is
//! accounted for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::need;
use curt_testkit::process::Server;
use curt_testkit::stop::SetOnDrop;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::crowd::{Crowd, Fronts, together};
use super::line::{SMALL, buffered, reconciles, reconciles_with};
use super::plant::{FRONT, Plant, Shape, list, stop};
use crate::length::length;
use crate::wait::eventually;

const CLIENTS: usize = 8;
/// What the kill of a server may cost: its buffer, which holds 800 keys, and those of the creates under way. Keygens
/// and keysyncs cost nothing.
const LEAK_PER_KILL: u64 = 800 + CLIENTS as u64;
/// Connections that the kill of a server may cost each client: the one that it had, and the next that it tries to make.
const LOST_PER_KILL: usize = 2;

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
    let (seconds, every) = length((12, 3), (300, 5));
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
        let stop = SetOnDrop::of(&enough);
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
        drop(stop);
        together(clients)
    });
    let servers_killed = killed.iter().filter(|role| **role == FRONT[0]).count();
    assert!(servers_killed > 0, "no server was killed: {killed:?}");
    seen.judge(&plant, servers_killed * LOST_PER_KILL * CLIENTS);
    let leaked_max = LEAK_PER_KILL * servers_killed as u64;
    reconciles(&plant, leaked_max);
    // Keys go on moving while processes live, and one that moves while we look would be seen twice.
    members.into_iter().for_each(|member| stop(member.server));
    let rest = reconciles(&plant, leaked_max);
    let stored = keys_in_one_place(&plant);
    assert_eq!(stored, seen.links.len(), "links that nobody asked for");
    println!(
        "scale: {} creates by {CLIENTS} clients, {} connections lost, longest wait {:?}; killed {killed:?}; \
         {} keys minted, {stored} on links, {} leaked (seed {seed})",
        seen.links.len(),
        seen.lost.len(),
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

/// What is lost with a process is known beforehand where nothing moves: the buffer of a server, and nothing of a keygen
/// or keysync.
#[test]
fn a_killed_server_leaks_its_buffer_to_the_key_and_keygen_and_keysync_nothing_k2() {
    let shape = Shape {
        ledgers: 1,
        pools: 1,
    };
    let plant = need!(Plant::start(shape, SMALL));
    let start = || [&["keygen"], &["keysync"], FRONT].map(|roles| plant.process(roles));
    let [keygen, keysync, front] = start();
    wait_until_idle(&plant, &front);
    keygen.kill().unwrap();
    keysync.kill().unwrap();
    let held = buffered(&front);
    let before = reconciles(&plant, 0);
    assert_eq!(before.keys("leaked"), Ok(0));
    assert_eq!(before.keys("buffered"), Ok(held));
    front.kill().unwrap();
    // Its entry among the processes outlives it for a while.
    let after = eventually(Duration::from_secs(60), || {
        let status = plant.status();
        match status.keys("buffered")? {
            0 => Ok(status),
            still => Err(format!("{still} keys in the buffer of a dead server")),
        }
    });
    assert_eq!(after.keys("leaked"), Ok(held), "{}", after.0);
    println!("scale: an idle server was killed with {held} keys, and as many leaked");
    // Those that come after it go on from there.
    let [keygen, keysync, front] = start();
    wait_until_idle(&plant, &front);
    reconciles_with(&plant, held);
    [front, keysync, keygen].into_iter().for_each(stop);
}

/// Waits until ledger and pool are full, and the buffer is.
fn wait_until_idle(plant: &Plant, front: &Server) {
    let mut last = None;
    eventually(Duration::from_secs(60), || {
        let (status, held) = (plant.status(), buffered(front));
        let now = (status.keys("minted")?, status.keys("pooled")?, held);
        let is_full = held >= 400 && now.1 >= 1_000 && status.keys("free")? >= 5_000;
        match is_full && last.replace(now) == Some(now) {
            true => Ok(()),
            false => Err(format!("{now:?} of {}", status.0)),
        }
    });
}
