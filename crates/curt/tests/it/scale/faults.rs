//! Engines die, forget and come back with old data, under load: nobody is refused, no key is on two links, and creates
//! are back within seconds.

use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::engines::redis::Sentinels;
use curt_testkit::engines::{postgres, redis};
use curt_testkit::length::is_full;
use curt_testkit::need;
use curt_testkit::process::Server;
use curt_testkit::stop::SetOnDrop;
use rustix::process::Signal;

use super::crowd::{Crowd, Fronts, Seen, together};
use super::line::{SMALL, metrics, reconciles, reconciles_with};
use super::plant::{FRONT, Plant, Shape, list, stop};
use crate::api::Api;
use crate::length::length;
use crate::wait::eventually;

pub(super) const ONE: Shape = Shape {
    ledgers: 1,
    pools: 1,
};
/// How soon creates must be back; longer where other tests use the machine, too.
fn back_within() -> Duration {
    Duration::from_secs(length(20, 5))
}

const CLIENTS: usize = 4;
const OWNED_WITHIN: Duration = Duration::from_secs(60);

/// One process of each kind, and a second of those that may look after the same shard.
pub(super) struct Running {
    pub(super) front: Server,
    pub(super) keysyncs: Vec<Server>,
    pub(super) keygen: Server,
}

impl Running {
    pub(super) fn start(plant: &Plant) -> Self {
        let running = Self {
            keygen: plant.process(&["keygen"]),
            keysyncs: (0..2).map(|_| plant.process(&["keysync"])).collect(),
            front: plant.process(FRONT),
        };
        running.wait_for_keys();
        running
    }

    fn wait_for_keys(&self) {
        eventually(Duration::from_secs(60), || {
            match metrics(&self.front).get("curt_keys_held{stage=\"buffered\"}") {
                Some(held) if held >= 400.0 => Ok(()),
                other => Err(format!("the ring holds {other:?}")),
            }
        });
    }

    /// Creates links all the time while `hurt` does its work.
    fn under_load(&self, plant: &Plant, hurt: impl FnOnce()) -> Seen {
        let fronts = Fronts::new(vec![self.front.http().unwrap()]);
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let seen = thread::scope(|scope| {
            let clients = Crowd {
                fronts: &fronts,
                token: plant.token(),
                clients: CLIENTS,
                pause: Duration::from_millis(2),
                stop: &stop,
                done: &done,
            };
            let clients = clients.start(scope);
            let end = SetOnDrop::of(&stop);
            thread::sleep(Duration::from_secs(1));
            hurt();
            thread::sleep(Duration::from_secs(length(3, 20)));
            drop(end);
            together(clients)
        });
        // The server lives and has the links database: every create is answered, at the first try.
        seen.judge(plant, 0);
        assert!(seen.longest_gap <= back_within(), "{:?}", seen.longest_gap);
        seen
    }

    pub(super) fn conflicts(&self) -> f64 {
        let name = "curt_key_conflicts_total";
        metrics(&self.front).get(name).unwrap_or_default()
    }

    fn minted_on_links(&self) -> f64 {
        let name = "curt_links_created_total{origin=\"ledger\"}";
        metrics(&self.front).get(name).unwrap_or_default()
    }

    /// Waits until links get minted keys again.
    fn wait_for_refills(&self, plant: &Plant) {
        let before = self.minted_on_links();
        let mut api = Api::new(self.front.http().unwrap(), plant.token());
        eventually(Duration::from_secs(30), || {
            let answer = api.create("https://example.com/again").unwrap();
            assert_eq!(answer.status, 201, "{answer:?}");
            match self.minted_on_links() > before {
                true => Ok(()),
                false => Err(format!("only random keys: {}", self.front.logs())),
            }
        });
    }

    /// Which of the keysyncs looks after the pool shard.
    fn owner(&self, plant: &Plant) -> Result<usize, String> {
        let status = plant.status().0;
        let owner = status["pools"][0]["owner"].as_str().unwrap_or_default();
        let is_owner = |one: &Server| owner.ends_with(&format!("/{} keysync", one.pid()));
        let found = self.keysyncs.iter().position(is_owner);
        found.ok_or_else(|| format!("no owner in {status}"))
    }

    pub(super) fn stop(self) {
        stop(self.front);
        self.keysyncs.into_iter().for_each(stop);
        stop(self.keygen);
    }
}

#[test]
fn a_server_starts_and_creates_at_once_with_keys_pool_and_leases_all_dead_r1() {
    let nowhere = [
        ("store.keys", "postgres://postgres@127.0.0.1:1/keys"),
        ("store.pool", "redis://127.0.0.1:1,redis://127.0.0.1:2"),
        ("store.leases", "zookeeper://127.0.0.1:1/curt"),
    ];
    let plant = need!(Plant::start(ONE, &nowhere));
    let front = plant.process(FRONT);
    let mut api = Api::new(front.http().unwrap(), plant.token());
    let mut took = Vec::new();
    for number in 0..200 {
        let begun = Instant::now();
        let target = format!("https://example.com/{number}");
        let answer = api.create(&target).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        took.push(begun.elapsed());
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        assert_eq!(api.follow(&key).unwrap().status, 302);
    }
    took.sort_unstable();
    let fallbacks = metrics(&front).get("curt_key_fallbacks_total");
    println!(
        "scale: creates with everything dead: median {:?}, worst {:?}",
        took[100], took[199]
    );
    assert_eq!(fallbacks, Some(200.0));
    if is_full() {
        assert!(took[100] < Duration::from_millis(100), "{:?}", took[100]);
    }
    stop(front);
}

#[test]
fn a_failover_that_brings_popped_keys_back_puts_no_key_on_two_links_k1() {
    let mut sentinels = need!(Sentinels::start(2));
    let url = sentinels.url();
    let settings = [SMALL, &[("store.pool", url.as_str())]].concat();
    let plant = need!(Plant::start(ONE, &settings));
    let running = Running::start(&plant);
    let mut came_back = 0;
    let seen = running.under_load(&plant, || {
        sentinels.pause_replication().unwrap();
        let primary = &sentinels.servers()[sentinels.primary().unwrap()];
        let copies: Vec<HashSet<String>> = sentinels.servers().iter().map(pooled).collect();
        // Until the buffer was refilled, from keys that will come back.
        eventually(Duration::from_secs(30), || {
            let left = pooled(primary);
            let followers = copies.iter().map(|copy| copy.difference(&left).count());
            match followers.max().unwrap_or_default() {
                popped if popped < 300 => Err(format!("only {popped} keys popped")),
                _ => Ok(()),
            }
        });
        // Nothing is popped between the look and the end.
        let stop_writes = ["CLIENT", "PAUSE", "60000", "WRITE"];
        primary.run_command(&stop_writes).unwrap();
        let left = pooled(primary);
        let copies: Vec<HashSet<String>> = sentinels.servers().iter().map(pooled).collect();
        let former = sentinels.kill_primary().unwrap();
        let now = sentinels.wait_for_failover(former).unwrap();
        came_back = copies[now].difference(&left).count();
    });
    assert!(
        came_back > 0,
        "no key came back: replication was not paused"
    );
    // They are in front of all others: each is met once, and no other key is.
    let mut api = Api::new(running.front.http().unwrap(), plant.token());
    eventually(Duration::from_secs(60), || {
        let answer = api.create("https://example.com/after").unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        match running.conflicts() as usize {
            met if met < came_back => Err(format!("{met} conflicts of {came_back}")),
            _ => Ok(()),
        }
    });
    running.wait_for_refills(&plant);
    assert_eq!(running.conflicts() as usize, came_back);
    println!(
        "scale: failover of Redis: {} creates, longest wait {:?}, {came_back} keys came back and as many conflicts",
        seen.links.len(),
        seen.longest_gap,
    );
    running.stop();
}

/// Removes everything, and tells how many keys that were.
const FORGET: &str = "local keys = redis.call('LLEN', KEYS[1]) redis.call('FLUSHALL') return keys";
/// Removes the keys alone.
const EMPTY: &str =
    "local keys = redis.call('LLEN', KEYS[1]) redis.call('DEL', KEYS[1]) return keys";

fn throw_away(plant: &Plant, script: &str) -> u64 {
    let keys = plant.pools[0].run_command(&["EVAL", script, "1", &list(0)]);
    keys.unwrap().trim().parse().unwrap()
}

#[test]
fn a_pool_that_forgets_everything_again_and_again_is_filled_again_k2() {
    let plant = need!(Plant::start(ONE, SMALL));
    let running = Running::start(&plant);
    assert_eq!(reconciles(&plant, 0).keys("leaked"), Ok(0));
    let mut forgotten = 0;
    let seen = running.under_load(&plant, || {
        for _ in 0..length(3, 10) {
            eventually(Duration::from_secs(30), || match plant.depth(0) {
                0..500 => Err("the pool is not filled"),
                _ => Ok(()),
            });
            forgotten += throw_away(&plant, FORGET);
        }
    });
    running.wait_for_refills(&plant);
    // What was forgotten is lost, and said to be, to the key.
    reconciles_with(&plant, forgotten);
    println!(
        "scale: FLUSHALL: {} creates, longest wait {:?}, {forgotten} keys forgotten and as many leaked",
        seen.links.len(),
        seen.longest_gap,
    );
    running.stop();
}

#[test]
fn keys_of_an_old_backup_meet_their_links_and_every_conflict_is_counted_k1() {
    let mut plant = need!(Plant::start(ONE, SMALL));
    let running = Running::start(&plant);
    // A backup of an empty pool would bring nothing back.
    eventually(OWNED_WITHIN, || match plant.depth(0) {
        0..500 => Err("the shard is not filled"),
        _ => Ok(()),
    });
    plant.pools[0].run_command(&["SAVE"]).unwrap();
    let dump = plant.pools[0].dump();
    let old = fs::read(&dump).unwrap();
    let saved = pooled(&plant.pools[0]);
    running.under_load(&plant, || {
        eventually(OWNED_WITHIN, || {
            match plant.used_keys().is_disjoint(&saved) {
                true => Err("no key of the backup is used yet"),
                false => Ok(()),
            }
        });
    });
    // Nobody may add to the pool while the backup is put back, so that what it brings can be told.
    let Running {
        front,
        keysyncs,
        keygen,
    } = running;
    stop(front);
    keysyncs.into_iter().for_each(stop);
    stop(keygen);
    plant.pools[0].kill().unwrap();
    fs::write(&dump, old).unwrap();
    plant.pools[0].restart().unwrap();
    let used = plant.used_keys();
    let brought = used.intersection(&pooled(&plant.pools[0])).count();
    assert!(brought > 0, "the backup holds keys that were used since");

    let front = plant.process(FRONT);
    let mut api = Api::new(front.http().unwrap(), plant.token());
    let mut keys = HashSet::new();
    for number in 0..2_000 {
        let target = format!("https://example.com/after/{number}");
        let answer = api.create(&target).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        assert!(!used.contains(&key) && keys.insert(key), "K-1");
    }
    let conflicts = metrics(&front).get("curt_key_conflicts_total").unwrap();
    // Its ring goes back to the pool.
    stop(front);
    let left = used.intersection(&pooled(&plant.pools[0])).count();
    println!(
        "scale: old backup: {brought} used keys came back, {conflicts} conflicts, {left} to come"
    );
    assert_eq!(conflicts, (brought - left) as f64);
}

pub(super) fn lines(text: &str) -> HashSet<String> {
    text.lines().map(str::to_owned).collect()
}

pub(super) fn pooled(pool: &redis::Server) -> HashSet<String> {
    let keys = pool.run_command(&["LRANGE", &list(0), "0", "-1"]);
    lines(&keys.unwrap())
}

#[test]
fn two_owners_of_a_pool_shard_overfill_it_at_worst_k1_k2() {
    let plant = need!(Plant::start(ONE, SMALL));
    let running = Running::start(&plant);
    let (mut owners, mut thrown_away) = (Vec::new(), 0);
    let seen = running.under_load(&plant, || {
        // Whoever has the shard falls asleep; its session runs out, the other takes over, and both wake up.
        for _ in 0..2 {
            let owner = eventually(OWNED_WITHIN, || running.owner(&plant));
            running.keysyncs[owner].signal(Signal::STOP).unwrap();
            let next = eventually(OWNED_WITHIN, || match running.owner(&plant)? {
                same if same == owner => Err("nobody took over".to_owned()),
                other => Ok(other),
            });
            // Until the new owner has filled the shard, too.
            thrown_away += throw_away(&plant, EMPTY);
            eventually(OWNED_WITHIN, || match plant.depth(0) {
                0..500 => Err("the new owner does not fill the shard"),
                _ => Ok(()),
            });
            running.keysyncs[owner].signal(Signal::CONT).unwrap();
            owners.push((owner, next));
        }
    });
    assert!(
        owners == [(0, 1), (1, 0)] || owners == [(1, 0), (0, 1)],
        "{owners:?}"
    );
    let rest = reconciles_with(&plant, thrown_away);
    let pooled = rest.keys("pooled").unwrap();
    assert!(pooled <= 6_000, "over its cap: {pooled}");
    println!(
        "scale: two owners: {} creates, {pooled} keys pooled",
        seen.links.len()
    );
    running.stop();
}

#[test]
fn a_keys_database_that_fails_over_stops_no_create_and_refills_go_on_k2() {
    let mut pair = need!(postgres::Pair::start());
    pair.primary().sql("create database keys").unwrap();
    pair.wait_until_followed().unwrap();
    let url = pair.url("keys");
    let settings = [SMALL, &[("store.keys", url.as_str())]].concat();
    let plant = need!(Plant::start(ONE, &settings));
    let running = Running::start(&plant);
    let seen = running.under_load(&plant, || {
        pair.kill_primary().unwrap();
        thread::sleep(Duration::from_secs(2));
        pair.promote().unwrap();
    });
    // More than all the keys that were pooled and free, so that new ones must have come.
    running.wait_for_refills(&plant);
    let minted = |plant: &Plant| plant.status().keys("minted");
    let before = eventually(Duration::from_secs(30), || minted(&plant));
    let mut api = Api::new(running.front.http().unwrap(), plant.token());
    for round in 0..40 {
        let targets: Vec<String> = (0..250)
            .map(|n| format!("https://example.com/{round}/{n}"))
            .collect();
        assert_eq!(api.bulk(&targets).unwrap().status, 200);
        thread::sleep(Duration::from_millis(50));
    }
    eventually(Duration::from_secs(30), || match minted(&plant)? {
        now if now > before => Ok(()),
        now => Err(format!("nothing minted since: {now}")),
    });
    // What the standby had not heard of counts as used and was never minted there, or was never minted: no leak.
    let rest = reconciles(&plant, 2_000);
    println!(
        "scale: failover of the keys database: {} creates, longest wait {:?}, {} keys leaked",
        seen.links.len(),
        seen.longest_gap,
        rest.keys("leaked").unwrap()
    );
    running.stop();
}
