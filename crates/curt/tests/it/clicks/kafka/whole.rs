//! Kafka, Redis and Cassandra together, with each of them and every process of curt killed while visitors click.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{io, net::SocketAddr};

use curt_testkit::engines::kafka::Cluster;
use curt_testkit::engines::{cassandra, postgres, redis, unique};
use curt_testkit::http::Connection;
use curt_testkit::need;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::super::counters::wait_for_window;
use super::super::kills::{Diary, judge};
use super::super::{Class, clicks_of, new_link};
use super::{Plant, wait_for_within};
use crate::length::length;
use crate::site::Site;

const VISITORS: usize = 8;
/// Links of each kind.
const LINKS: usize = 3;
const DRAINED_WITHIN: Duration = Duration::from_secs(300);
/// Far more than it takes.
const ROUNDS_MAX: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// With the forwarder in it.
    KillServer,
    KillCounter,
    FlushRedis,
    KillRedis,
    RestartBroker,
}

impl Fault {
    const ALL: [Self; 5] = [
        Self::KillServer,
        Self::KillCounter,
        Self::FlushRedis,
        Self::KillRedis,
        Self::RestartBroker,
    ];
}

/// Links whose clicks are told apart by their referrers, and links whose clicks are only counted: millions of referrers
/// would be a test of something else.
struct Links {
    marked: Vec<String>,
    plain: Vec<String>,
}

/// What visitors know of their clicks.
#[derive(Debug, Default)]
struct ClickTally {
    diary: Diary,
    /// By plain link.
    answered: [u64; LINKS],
    /// Asked for, and the kill came first.
    open: [u64; LINKS],
}

impl ClickTally {
    fn add(&mut self, other: Self) {
        self.diary.add(other.diary);
        for link in 0..LINKS {
            self.answered[link] += other.answered[link];
            self.open[link] += other.open[link];
        }
    }

    fn answered(&self) -> u64 {
        self.diary.answered.len() as u64 + self.answered.iter().sum::<u64>()
    }

    fn open(&self) -> u64 {
        self.diary.open.len() as u64 + self.open.iter().sum::<u64>()
    }
}

struct WholePath {
    cluster: Cluster,
    redis: redis::Server,
    server: Site,
    counters: [Site; 2],
    random: StdRng,
}

impl WholePath {
    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::KillServer => self.server.kill(),
            Fault::KillCounter => {
                let victim = self.random.random_range(0..self.counters.len());
                self.counters[victim].kill();
                self.counters[victim].restart_as(&["clicks"]);
            }
            Fault::FlushRedis => {
                wait_for_window(&self.redis);
                self.redis.run_command(&["FLUSHALL"]).unwrap();
            }
            Fault::KillRedis => {
                wait_for_window(&self.redis);
                if self.random.random_bool(0.5) {
                    // It comes back as it was before the last additions.
                    self.redis.run_command(&["SAVE"]).unwrap();
                }
                self.redis.kill().unwrap();
                self.redis.restart().unwrap();
            }
            Fault::RestartBroker => {
                let broker = self.cluster.broker_mut(0).unwrap();
                match self.random.random_bool(0.5) {
                    true => broker.kill().unwrap(),
                    false => broker.stop().unwrap(),
                }
                broker.restart().unwrap();
            }
        }
    }

    /// Visitors click before, during and after the fault.
    fn click_through(&mut self, fault: Fault, links: &Links, round: usize) -> ClickTally {
        let pauses = length(100..400, 500..3_000);
        let [before, after] =
            [(); 2].map(|()| Duration::from_millis(self.random.random_range(pauses.clone())));
        let (http, began) = (self.server.http(), Instant::now());
        let tally = click_until(http, links, round, || {
            thread::sleep(before);
            self.strike(fault);
            thread::sleep(after);
        });
        if fault == Fault::KillServer {
            self.server.restart_as(&["redirect", "api"]);
        } else {
            assert_eq!(tally.open(), 0, "not answered in {fault:?}");
        }
        println!(
            "{fault:?}: {} clicks in {:?}",
            tally.answered(),
            began.elapsed()
        );
        tally
    }
}

#[test]
fn the_whole_path_over_kafka_redis_and_cassandra_is_exact_whatever_is_killed_c1() {
    let cluster = need!(Cluster::start(1));
    let redis = need!(redis::Server::start());
    let cassandra = need!(cassandra::shared());
    let database = need!(postgres::shared()).database("kafka_whole").unwrap();
    let in_redis = format!("store.counters={}", redis.url());
    let more = [
        &in_redis,
        "clicks.flush_every=5s",
        "clicks.spool_max=2GiB",
        // Each click is looked for in the end.
        "clicks.retention_size=never",
        "kafka.delivery_timeout=5s",
    ];
    let mut plant = Plant::new(&cluster, database, &more);
    plant.keep_clicks_in_cassandra(&cassandra.addresses(), &unique("whole"));
    let server = plant.server();
    let new_links = || (0..LINKS).map(|_| new_link(&server, &json!({}))).collect();
    let links = Links {
        marked: new_links(),
        plain: new_links(),
    };
    let seed = rand::random::<u64>();
    let mut path = WholePath {
        counters: [plant.counter(), plant.counter()],
        cluster,
        redis,
        server,
        random: StdRng::seed_from_u64(seed),
    };
    let wanted = length(1, 5_000_000);
    println!("{wanted} clicks at least, seed {seed}");
    let (mut tally, mut round) = (ClickTally::default(), 0);
    while tally.answered() < wanted {
        let mut faults = Fault::ALL;
        faults.shuffle(&mut path.random);
        for fault in faults {
            tally.add(path.click_through(fault, &links, round));
            round += 1;
        }
        assert!(round < ROUNDS_MAX, "{} clicks only", tally.answered());
    }
    finish(path, &links, &tally, round);
}

fn finish(mut path: WholePath, links: &Links, tally: &ClickTally, rounds: usize) {
    let server = &path.server;
    let keys = [links.marked.as_slice(), &links.plain].concat();
    wait_for_within(DRAINED_WITHIN, server, &keys, tally.answered());
    // They write what they have, also what they should not have.
    for counter in &mut path.counters {
        assert!(counter.terminate().success());
    }
    // Reports wait for one.
    path.counters[0].restart_as(&["clicks"]);
    judge(server, &links.marked, &tally.diary);
    for (link, key) in links.plain.iter().enumerate() {
        let counted = clicks_of(&mut server.api(), key).total();
        let (answered, open) = (tally.answered[link], tally.open[link]);
        assert!(
            (answered..=answered + open).contains(&counted),
            "C-1: {counted} clicks of /{key} are counted, {answered} were answered and {open} were not"
        );
    }
    println!(
        "{} clicks answered over {rounds} faults, {} were not, 0 lost, 0 double",
        tally.answered(),
        tally.open()
    );
}

/// Visitors click until the server is gone, or `end` has returned.
fn click_until(http: SocketAddr, links: &Links, round: usize, end: impl FnOnce()) -> ClickTally {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let visitors = (0..VISITORS).map(|visitor| {
            let name = format!("r{round}-v{visitor}");
            scope.spawn(move || {
                let mut tally = ClickTally::default();
                // The error is the kill; what counts is in the tally.
                drop(click_in_turn(http, links, &name, is_over, &mut tally));
                tally
            })
        });
        let visitors: Vec<_> = visitors.collect();
        end();
        is_over.store(true, Ordering::Relaxed);
        let mut all = ClickTally::default();
        for visitor in visitors {
            all.add(visitor.join().unwrap());
        }
        all
    })
}

fn click_in_turn(
    http: SocketAddr,
    links: &Links,
    name: &str,
    is_over: &AtomicBool,
    tally: &mut ClickTally,
) -> io::Result<()> {
    let mut connection = Connection::open(http)?;
    let request = |key: &String| Class::Human.request(&format!("/{key}"));
    let plain: Vec<_> = links.plain.iter().map(request).collect();
    // As fast as they are answered, it would take a minute to count them without optimisation.
    let (marked_every, pause) = length((4, Duration::from_millis(10)), (500, Duration::ZERO));
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(pause);
        number += 1;
        let link = number % LINKS;
        if number % marked_every == 0 {
            let referrer = format!("{name}-n{number}.example");
            let marked = request(&links.marked[link]);
            let marked = marked.header("Referer", format!("https://{referrer}/"));
            tally.diary.open.push(referrer);
            assert_eq!(connection.send(&marked)?.status, 302);
            tally.diary.answered.extend(tally.diary.open.pop());
        } else {
            tally.open[link] += 1;
            assert_eq!(connection.send(&plain[link])?.status, 302);
            tally.open[link] -= 1;
            tally.answered[link] += 1;
        }
    }
    Ok(())
}
