//! Two regions, each with the leader of one node and a replica of the other's, and 80 ms between them.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use curt_core::{DomainId, Key, LinkId, ShardId};
use curt_testkit::engines::postgres::{Database, Pair, Server as Postgres, shared};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::http::Client;
use curt_testkit::need;
use curt_testkit::process::{App, Server};
use serde_json::json;

use super::plant::stop;
use crate::alone::Company;
use crate::api::{Answer, Api, bulk_results};
use crate::length::{is_full, length};
use crate::wait::eventually;

/// In each direction.
const DISTANCE: Line = Line::Slow(Duration::from_millis(40));
const WAIT_MAX: Duration = Duration::from_secs(60);
const EU: usize = 0;
const US: usize = 1;

struct Installation {
    servers: [Server; 2],
    apps: [App; 2],
    /// From each region to the other.
    lines: [Vec<Proxy>; 2],
    token: String,
    _accounts: Database,
    _nodes: [Pair; 2],
    _company: Company,
}

impl Installation {
    fn start() -> Result<Self> {
        let company = Company::join();
        let accounts = shared()?.database("accounts")?;
        let nodes = [Pair::start()?, Pair::start()?];
        for node in &nodes {
            node.primary().sql("create database links")?;
            node.wait_until_followed()?;
        }
        let mut lines = [Vec::new(), Vec::new()];
        let mut apps = Vec::new();
        for (region, name) in ["eu", "us"].into_iter().enumerate() {
            let mut far = |server: &Postgres| -> Result<SocketAddr> {
                let target = SocketAddr::from(([127, 0, 0, 1], server.port()));
                let line = Proxy::to(target)?;
                line.set(DISTANCE);
                let address = line.address();
                lines[region].push(line);
                Ok(address)
            };
            let near = |server: &Postgres| SocketAddr::from(([127, 0, 0, 1], server.port()));
            // The leader of a node is in the region of the same number.
            let own = (near(nodes[region].primary()), far(nodes[region].standby())?);
            let other = &nodes[1 - region];
            let other = (far(other.primary())?, near(other.standby()));
            let [first, second] = if region == EU {
                [own, other]
            } else {
                [other, own]
            };
            let links = format!(
                "postgres://postgres@{},{}/links?regions=eu,us,postgres://postgres@{},{}/links?regions=us,eu",
                first.0, first.1, second.0, second.1
            );
            apps.push(app(name, &links, &accounts.url())?);
        }
        let [eu, us] = <[App; 2]>::try_from(apps).unwrap_or_else(|_| unreachable!());
        eu.run(&["user", "add", "tests@example.com"])?;
        let token = eu.run(&["api-key", "add", "tests", "--user", "tests@example.com"])?;
        let first = eu.start()?;
        for (node, region) in [("0", "eu"), ("1", "us")] {
            // The first map needs both nodes, one of which is far away.
            eventually(WAIT_MAX, || eu.run(&["shards", "region", node, region]));
        }
        Ok(Self {
            servers: [first, us.start()?],
            apps: [eu, us],
            lines,
            token: token.trim().to_owned(),
            _accounts: accounts,
            _nodes: nodes,
            _company: company,
        })
    }

    fn api(&self, region: usize) -> Api {
        Api::new(self.servers[region].http().unwrap(), &self.token)
    }

    fn metrics(&self, region: usize) -> String {
        let mut admin = Client::new(self.servers[region].admin().unwrap());
        admin.get("/metrics").unwrap().text()
    }

    /// Nothing passes between a region and the other one.
    fn set_lines(&self, region: usize, line: Line) {
        self.lines[region].iter().for_each(|one| one.set(line));
    }
}

fn app(region: &str, links: &str, accounts: &str) -> Result<App> {
    Ok(App::new(env!("CARGO_BIN_EXE_curt"))?
        .ready_within(WAIT_MAX * 2)
        .setting("region", region)
        .setting("store.links", links)
        .setting("store.accounts", accounts)
        .setting("store.clicks", accounts)
        .setting("store.keys", accounts)
        // The machine may be busy.
        .setting("postgres.lookup_timeout", length("10s", "1500ms"))
        .setting("server.drain_delay", "0s")
        .setting("limits.misses_per_address", "")
        .setting("server.workers", 1)
        .setting("log.level", "off"))
}

/// By modulo.
fn node_of(key: &str) -> usize {
    let id = LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap());
    usize::from(ShardId::of(&id).number() % 2)
}

fn create_alias(api: &mut Api, alias: &str) -> Answer {
    let link = json!({ "target": "https://example.com/", "alias": alias });
    api.post("/api/v1/links", &link).unwrap()
}

/// An alias whose link is on the node.
fn alias_on(node: usize, prefix: &str) -> String {
    let aliases = (0..).map(|n| format!("{prefix}-{n}"));
    aliases
        .into_iter()
        .find(|alias| node_of(alias) == node)
        .unwrap()
}

fn assert_follows(api: &mut Api, key: &str) {
    let answer = api.follow(key).unwrap();
    assert_eq!(answer.status, 302, "{key}: {answer:?}");
}

#[test]
fn two_regions_write_at_home_read_nearby_and_outlive_a_cut_k1() {
    let installation = need!(Installation::start());
    let mut apis = [installation.api(EU), installation.api(US)];
    let shown = installation.apps[EU].run(&["shards", "show"]).unwrap();
    assert!(
        shown.contains("region eu") && shown.contains("region us"),
        "{shown}"
    );

    // Both servers follow the map.
    for region in [EU, US] {
        let mut in_a_row = 0;
        eventually(WAIT_MAX, || {
            let answer = apis[region].create("https://example.com/first").unwrap();
            if answer.status != 201 {
                return Err(format!("{answer:?}"));
            }
            let key = answer.json()["key"].as_str().unwrap().to_owned();
            in_a_row = if node_of(&key) == region {
                in_a_row + 1
            } else {
                0
            };
            (in_a_row == 20).then_some(()).ok_or(key)
        });
    }
    let targets: Vec<String> = (0..24)
        .map(|n| format!("https://example.com/{n}"))
        .collect();
    let keys = [EU, US].map(|region| {
        let keys = bulk_results(&apis[region].bulk(&targets).unwrap());
        let homes: Vec<usize> = keys.iter().map(|key| node_of(key)).collect();
        assert!(
            homes.iter().all(|home| *home == region),
            "{region}: {homes:?}"
        );
        // New links are found in the other region at once.
        keys.iter()
            .for_each(|key| assert_follows(&mut apis[1 - region], key));
        keys
    });
    assert_one_winner(&installation);
    measure_redirects(&installation, &keys);

    // Replicas have everything, and are what is read.
    thread::sleep(Duration::from_secs(2));
    for region in [EU, US] {
        // The connections from before may have been idle for longer than the servers keep them.
        let mut api = installation.api(region);
        for key in keys.iter().flatten() {
            assert_follows(&mut api, key);
        }
        let metrics = installation.metrics(region);
        let is_read = |line: &str| {
            line.starts_with("curt_store_reads_total")
                && line.contains("replica")
                && !line.ends_with(" 0")
        };
        assert!(metrics.lines().any(is_read), "{metrics}");
        assert!(metrics.contains("curt_replica_lag_seconds"), "{metrics}");
    }
    assert_cut_off(&installation, &keys);
    let [eu, us] = installation.servers;
    stop(eu);
    us.kill().unwrap();
}

fn assert_one_winner(installation: &Installation) {
    let rounds = length(50, 1_000);
    let race = |region: usize| {
        let mut api = installation.api(region);
        move || -> Vec<u16> {
            let aliases = (0..rounds).map(|n| format!("raced-{n}"));
            aliases
                .map(|alias| create_alias(&mut api, &alias).status)
                .collect()
        }
    };
    let (eu, mut us) = (race(EU), race(US));
    let (eu, us) = thread::scope(|scope| {
        let eu = scope.spawn(eu);
        let us = us();
        (eu.join().unwrap(), us)
    });
    for (round, answers) in eu.iter().zip(&us).enumerate() {
        let mut answers = [*answers.0, *answers.1];
        answers.sort_unstable();
        assert_eq!(answers, [201, 409], "K-1: raced-{round}");
    }
}

/// Misses of links of both regions, from one: said and not judged.
fn measure_redirects(installation: &Installation, keys: &[Vec<String>; 2]) {
    if !is_full() {
        return;
    }
    let mut api = installation.api(US);
    for (home, keys) in ["eu", "us"].into_iter().zip(keys) {
        let mut times = Vec::new();
        for key in keys.iter().cycle().take(2_000) {
            // Copies end after a second; the rest is answered from them.
            let begun = Instant::now();
            assert_follows(&mut api, key);
            times.push(begun.elapsed());
            thread::sleep(Duration::from_millis(20));
        }
        times.sort_unstable();
        let at = |share: usize| times[times.len() * share / 1_000 - 1];
        println!(
            "redirects in us of links written in {home}: p50 {:?}, p99 {:?}, p99.9 {:?}",
            at(500),
            at(990),
            at(999)
        );
    }
}

/// The region us is cut off: its redirects go on, it writes what is its own, and says what it cannot write.
fn assert_cut_off(installation: &Installation, keys: &[Vec<String>; 2]) {
    let mut api = installation.api(US);
    installation.set_lines(US, Line::Held);
    let cut_at = Instant::now();
    let lasts = Duration::from_secs(length(5, 120));
    let (mut redirects, mut failed) = (0, Vec::new());
    while cut_at.elapsed() < lasts {
        for key in keys.iter().flatten() {
            redirects += 1;
            let asked_at = cut_at.elapsed();
            let answer = api.follow(key).unwrap();
            if answer.status != 302 {
                let node = node_of(key);
                failed.push(format!("{asked_at:?}, node {node}: {}", answer.text()));
            }
        }
        thread::sleep(Duration::from_millis(200));
    }
    let failures = failed.len();
    println!("regions, us cut off for {lasts:?}: {redirects} redirects, {failures} failed");
    assert!(
        failures * 1_000 <= redirects,
        "{failures} of {redirects} redirects failed: {failed:#?}"
    );
    let refused = create_alias(&mut api, &alias_on(EU, "cut"));
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert!(
        refused.text().contains("the region eu"),
        "{}",
        refused.text()
    );
    let made = api.create("https://example.com/cut").unwrap();
    assert_eq!(
        made.status, 201,
        "generated keys are the region's own: {made:?}"
    );
    let own = create_alias(&mut api, &alias_on(US, "cut"));
    assert_eq!(own.status, 201, "{own:?}");
    eventually(WAIT_MAX, || {
        let mut admin = Client::new(installation.servers[US].admin().unwrap());
        let ready = admin.get("/health/ready").unwrap();
        assert_eq!(ready.status, 200, "{}", ready.text());
        let text = ready.text();
        let is_told = text.contains("written in region eu");
        is_told.then_some(()).ok_or(text)
    });
    installation.set_lines(US, DISTANCE);
    eventually(WAIT_MAX, || {
        let answer = create_alias(&mut api, &alias_on(EU, "healed"));
        matches!(answer.status, 201 | 409)
            .then_some(())
            .ok_or(format!("{answer:?}"))
    });
}
