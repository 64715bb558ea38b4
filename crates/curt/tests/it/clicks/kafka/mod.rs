//! Servers forward their clicks to Kafka, and processes of their own count them: exact, whoever is killed.

mod away;
mod delivery;
mod rates;
mod readers;
mod whole;

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use curt_testkit::engines::kafka::{self, Cluster};
use curt_testkit::engines::postgres::{self, Database};
use curt_testkit::engines::{redis, unique};
use curt_testkit::http::Connection;
use curt_testkit::need;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;

use super::kills::{Diary, click_until, judge};
use super::{Class, WAIT_MAX, clicks_of, new_link};
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

const CLICKERS: u64 = 4;

/// A topic of Kafka between servers and counters over one PostgreSQL.
struct Plant {
    _database: Database,
    stream: String,
    more: Vec<String>,
    /// What commands need, too: where the data is.
    environment: Vec<(&'static str, String)>,
}

impl Plant {
    fn new(cluster: &Cluster, database: Database, more: &[&str]) -> Self {
        let name = unique("events");
        let stream = format!(
            "store.stream=kafka://{}/{name}?group={name}",
            cluster.addresses()
        );
        Self {
            environment: vec![("CURT_STORE_LINKS", database.url())],
            _database: database,
            stream,
            more: more.iter().map(|setting| (*setting).to_owned()).collect(),
        }
    }

    /// Instead of in the links database.
    fn keep_clicks_in_cassandra(&mut self, addresses: &str, namespace: &str) {
        let url = format!("cassandra://{addresses}/curt?namespace={namespace}");
        self.environment.push(("CURT_STORE_CLICKS", url));
        // The machine may be busy.
        for timeout in [
            "CURT_CASSANDRA_CONNECT_TIMEOUT",
            "CURT_CASSANDRA_CALL_TIMEOUT",
            "CURT_CASSANDRA_BACKGROUND_TIMEOUT",
        ] {
            self.environment.push((timeout, "20s".to_owned()));
        }
    }

    /// The stream's URL.
    fn address(&self) -> &str {
        self.stream.strip_prefix("store.stream=").unwrap()
    }

    fn hosts(&self) -> String {
        self.split().0.to_owned()
    }

    fn topic(&self) -> String {
        self.split().1.to_owned()
    }

    fn split(&self) -> (&str, &str) {
        let rest = self.address().strip_prefix("kafka://").unwrap();
        rest.split('?').next().unwrap().split_once('/').unwrap()
    }

    fn site(&self, more: &[&str]) -> Site {
        let environment = self.environment.iter();
        let environment: Vec<(&str, &Path)> = environment
            .map(|(name, value)| (*name, Path::new(value)))
            .collect();
        let mut settings = vec![
            "server.workers=2",
            "kafka.partitions=3",
            "kafka.session_timeout=6s",
            &self.stream,
        ];
        settings.extend(self.more.iter().map(String::as_str));
        settings.extend(more);
        Site::with_environment(&settings, &environment)
    }

    /// One that answers visitors and reports, and counts nothing.
    fn server(&self) -> Site {
        self.server_with(&[])
    }

    fn server_with(&self, more: &[&str]) -> Site {
        let mut site = self.site(more);
        let token = site.new_token("tests");
        site.use_token(&token);
        site.restart_as(&["redirect", "api"]);
        site
    }

    fn counter(&self) -> Site {
        self.counter_with(&[])
    }

    fn counter_with(&self, more: &[&str]) -> Site {
        let mut site = self.site(more);
        site.restart_as(&["clicks"]);
        site
    }
}

/// Waits until the server's reports have as many clicks of the keys.
fn wait_for(site: &Site, keys: &[String], expected: u64) {
    wait_for_within(WAIT_MAX, site, keys, expected);
}

fn wait_for_within(time: Duration, site: &Site, keys: &[String], expected: u64) {
    let mut api = site.api();
    let mut last = 0;
    eventually(time, || {
        let counts = keys.iter().map(|key| clicks_of(&mut api, key).total());
        let counted: u64 = counts.sum();
        assert!(
            counted >= last,
            "C-1: a total went down from {last} to {counted}"
        );
        last = counted;
        match counted >= expected {
            true => Ok(()),
            false => Err(format!(
                "{counted} of {expected} clicks are counted; {}",
                site.server().logs()
            )),
        }
    });
}

#[test]
fn clicks_are_exact_over_kill_9_of_servers_and_counters_c1() {
    let cluster = need!(kafka::shared());
    let redis = need!(redis::Server::start());
    let postgres = need!(postgres::shared());
    let database = postgres.database("kafka_kills").unwrap();
    let plant = Plant::new(&cluster, database, &["clicks.flush_every=200ms"]);
    let mut server = plant.server();
    let keys: Vec<String> = (0..3).map(|_| new_link(&server, &json!({}))).collect();
    // What one has in its memory another finds in Redis, or not.
    let in_redis = format!("store.counters={}", redis.url());
    let mut counters = [plant.counter(), plant.counter_with(&[&in_redis])];
    let seed = rand::random::<u64>();
    let mut random = StdRng::seed_from_u64(seed);
    let kills = length(3, 60);
    println!("{kills} kills, seed {seed}");
    let mut diary = Diary::default();
    for kill in 0..kills {
        let alive = Duration::from_millis(random.random_range(200..900));
        let victim = random.random_range(0..3);
        let seen = click_until(server.http(), &keys, kill, || {
            thread::sleep(alive);
            if victim < 2 {
                counters[victim].kill();
            }
            thread::sleep(alive);
            server.kill();
        });
        seen.into_iter().for_each(|seen| diary.add(seen));
        server.restart_as(&["redirect", "api"]);
        if victim < 2 {
            counters[victim].restart_as(&["clicks"]);
        }
    }
    wait_for(&server, &keys, diary.answered.len() as u64);
    judge(&server, &keys, &diary);
    println!(
        "{} clicks answered over {kills} kills, 0 lost, 0 double",
        diary.answered.len()
    );
}

/// It wakes with a window that others have counted meanwhile.
#[test]
fn a_counter_that_stood_still_past_its_session_counts_nothing_twice_c1() {
    let cluster = need!(kafka::shared());
    let postgres = need!(postgres::shared());
    let database = postgres.database("kafka_zombie").unwrap();
    let plant = Plant::new(&cluster, database, &["clicks.flush_every=3s"]);
    let server = plant.server();
    let keys: Vec<String> = (0..2).map(|_| new_link(&server, &json!({}))).collect();
    let stopped = plant.counter();
    let mut diary = click_for(&server, &keys, 0, Duration::from_millis(300));
    // It has read, and most likely not written.
    thread::sleep(Duration::from_millis(500));
    stopped.server().signal(Signal::STOP).unwrap();
    let _other = plant.counter();
    diary.add(click_for(&server, &keys, 1, Duration::from_millis(300)));
    wait_for(&server, &keys, diary.answered.len() as u64);
    stopped.server().signal(Signal::CONT).unwrap();
    diary.add(click_for(&server, &keys, 2, Duration::from_millis(300)));
    wait_for(&server, &keys, diary.answered.len() as u64);
    // Long enough for a window that should not be counted.
    thread::sleep(Duration::from_secs(4));
    judge(&server, &keys, &diary);
}

#[test]
fn clicks_wait_in_the_spool_while_kafka_is_away_and_a_lost_server_is_drained_c1() {
    let mut cluster = need!(Cluster::start(1));
    let postgres = need!(postgres::shared());
    let database = postgres.database("kafka_away").unwrap();
    let more = ["clicks.flush_every=200ms", "kafka.delivery_timeout=2s"];
    let plant = Plant::new(&cluster, database, &more);
    let mut server = plant.server();
    let keys = vec![new_link(&server, &json!({}))];
    let _counter = plant.counter();
    let mut diary = click_for(&server, &keys, 0, Duration::from_millis(200));
    wait_for(&server, &keys, diary.answered.len() as u64);
    cluster.broker_mut(0).unwrap().kill().unwrap();
    let away = Duration::from_millis(length(1_000, 300_000));
    diary.add(click_for(&server, &keys, 1, away));
    eventually(WAIT_MAX, || {
        let said = server.api().get("/health/ready").unwrap().text();
        match said.contains("forward_clicks") {
            true => Ok(()),
            false => Err(said),
        }
    });
    cluster.broker_mut(0).unwrap().restart().unwrap();
    wait_for(&server, &keys, diary.answered.len() as u64);

    // It is killed with clicks in its spool, and does not come back.
    cluster.broker_mut(0).unwrap().kill().unwrap();
    diary.add(click_for(&server, &keys, 2, Duration::from_millis(300)));
    server.kill();
    cluster.broker_mut(0).unwrap().restart().unwrap();
    let other = plant.server();
    let spool = server.folder().join("data/spool");
    for is_first in [true, false] {
        let mut arguments = vec![
            "spool".to_owned(),
            "drain".into(),
            spool.display().to_string(),
        ];
        arguments.push("--json".into());
        arguments.extend(other.set_arguments());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let drained = other.output(&arguments);
        let said = String::from_utf8_lossy(&drained.stderr);
        assert!(drained.status.success(), "{said}");
        let told: serde_json::Value = serde_json::from_slice(&drained.stdout).unwrap();
        assert_eq!(told["forwarded"].as_u64().unwrap() > 0, is_first, "{told}");
    }
    wait_for(&other, &keys, diary.answered.len() as u64);
    judge(&other, &keys, &diary);
}

fn click_for(server: &Site, keys: &[String], round: usize, time: Duration) -> Diary {
    let mut diary = Diary::default();
    let seen = click_until(server.http(), keys, round, || thread::sleep(time));
    seen.into_iter().for_each(|seen| diary.add(seen));
    diary
}

/// So many clicks, each with a referrer of its own that is as long as one can be; says how many were answered.
fn click_with_long_texts(http: SocketAddr, key: &str, clicks: u64) -> u64 {
    let (path, padding) = (format!("/{key}"), "r".repeat(500));
    let each = clicks.div_ceil(CLICKERS);
    thread::scope(|scope| {
        for _ in 0..CLICKERS {
            scope.spawn(|| {
                let mut connection = Connection::open(http).unwrap();
                for _ in 0..each {
                    let page = unique("page");
                    let referrer = format!("https://news.example/{page}/{padding}");
                    let request = Class::Human.request(&path).header("Referer", referrer);
                    let answer = connection.send(&request).unwrap();
                    assert_eq!(answer.status, 302, "{answer:?}");
                }
            });
        }
    });
    CLICKERS * each
}
