//! Servers with copies of each other's links: a cache that they share, on Memcached, and a channel of invalidations, on
//! Redis, each of which can be cut off, slowed down and killed.

mod cold;
mod outages;
mod staleness;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use curt_testkit::engines::memcached;
use curt_testkit::engines::postgres::{self, Database};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::redis;
use curt_testkit::http::Client;
use curt_testkit::process::{App, Server};

use crate::alone::Company;
use crate::api::{Api, bulk_results};
use crate::metrics::Metrics;
use crate::wait::eventually;

const WAIT_MAX: Duration = Duration::from_secs(60);
/// Links of one request.
const BULK: usize = 500;

/// Servers over one PostgreSQL, with what they share.
struct Fleet {
    servers: Vec<Server>,
    app: App,
    token: String,
    caches: Vec<Cache>,
    channel: Proxy,
    _redis: redis::Server,
    _links: Database,
    _company: Company,
}

/// A cache server, and the line to it.
struct Cache {
    server: memcached::Server,
    line: Proxy,
}

impl Fleet {
    fn start(servers: usize, caches: usize, settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_with(servers, &vec![64; caches], settings)
    }

    /// With cache servers of so many mebibytes.
    fn start_with(servers: usize, caches: &[u32], settings: &[(&str, &str)]) -> Result<Self> {
        let company = Company::join();
        let links = postgres::shared()?.database("links")?;
        let redis = redis::Server::start()?;
        let channel = Proxy::to(SocketAddr::from(([127, 0, 0, 1], redis.port())))?;
        let caches = caches.iter().map(|mebibytes| {
            let server = memcached::Server::start(*mebibytes)?;
            let line = Proxy::to(server.address())?;
            Ok(Cache { server, line })
        });
        let caches: Vec<Cache> = caches.collect::<Result<_>>()?;
        let lines = caches.iter().map(|cache| cache.line.address());
        let lines: Vec<String> = lines.map(|line| format!("memcached://{line}")).collect();
        let app = App::new(env!("CARGO_BIN_EXE_curt"))?
            .ready_within(WAIT_MAX * 2)
            .setting("store.links", links.url())
            .setting("store.cache", lines.join(","))
            .setting("store.invalidations", format!("redis://{}", channel.address()))
            .setting("redis.connect_timeout", "500ms")
            .setting("redis.command_timeout", "1s")
            // The machine may be busy.
            .setting("postgres.lookup_timeout", "30s")
            .setting("postgres.write_timeout", "30s")
            .setting("clicks.capture", "false")
            .setting("limits.misses_per_address", "")
            .setting("server.drain_delay", "0s")
            .setting("server.workers", 1)
            .setting("log.level", "warn");
        let app = settings
            .iter()
            .fold(app, |app, (key, value)| app.setting(key, value));
        app.run(&["user", "add", "tests@example.com"])?;
        let token = app.run(&["api-key", "add", "tests", "--user", "tests@example.com"])?;
        let mut fleet = Self {
            servers: Vec::new(),
            app,
            token: token.trim().to_owned(),
            caches,
            channel,
            _redis: redis,
            _links: links,
            _company: company,
        };
        for _ in 0..servers {
            fleet.add_server()?;
        }
        Ok(fleet)
    }

    /// Starts one more server, in a folder of its own, as on a machine of its own.
    fn add_server(&mut self) -> Result<usize> {
        let number = self.servers.len();
        let folder = format!("data_dir=data-{number}");
        let server = self
            .app
            .start_with(&["redirect", "api", "--set", &folder])?;
        self.servers.push(server);
        Ok(number)
    }

    fn api(&self, server: usize) -> Api {
        Api::new(self.servers[server].http().unwrap(), &self.token)
    }

    fn metrics(&self, server: usize) -> Metrics {
        let mut admin = Client::new(self.servers[server].admin().unwrap());
        Metrics::parse(&admin.get("/metrics").unwrap().text())
    }

    fn metric(&self, server: usize, name: &str) -> f64 {
        self.metrics(server).get(name).unwrap_or(0.0)
    }

    /// Look-ups of one server in the shared cache.
    fn shared_lookups(&self, server: usize) -> f64 {
        let is_lookup = |name: &str| name.starts_with("curt_shared_cache_lookups_total");
        let lookups = self.metrics(server);
        lookups
            .matching(is_lookup)
            .iter()
            .map(|(_, count)| count)
            .sum()
    }

    /// Waits until every server uses so many cache servers.
    fn await_caches(&self, count: usize) {
        for server in 0..self.servers.len() {
            eventually(WAIT_MAX, || {
                let is_up = |name: &str| name.starts_with("curt_shared_cache_server_up");
                match self.metrics(server).matching(is_up).len() {
                    up if up == count => Ok(()),
                    up => Err(format!("server {server} uses {up} cache servers")),
                }
            });
        }
    }

    /// Waits until the channel reaches every server, or none.
    fn await_channel(&self, is_up: bool) {
        for server in 0..self.servers.len() {
            eventually(WAIT_MAX, || {
                let up = self.metric(server, "curt_invalidations_up");
                match (up > 0.0) == is_up {
                    true => Ok(()),
                    false => Err(format!("server {server}: {up}")),
                }
            });
        }
    }

    fn create_links(&self, count: usize) -> Vec<String> {
        let mut api = self.api(0);
        let targets: Vec<String> = (0..count)
            .map(|n| format!("https://example.com/{n}"))
            .collect();
        let bulks = targets.chunks(BULK);
        bulks
            .flat_map(|targets| bulk_results(&api.bulk(targets).unwrap()))
            .collect()
    }

    fn set_caches(&self, line: Line) {
        self.caches.iter().for_each(|cache| cache.line.set(line));
    }
}

/// What visitors were answered, and how long that took.
#[derive(Debug, Default)]
struct Followed {
    took: Vec<Duration>,
    /// Answers that were no redirect, and how many.
    failed: Vec<String>,
}

impl Followed {
    /// Follows the keys one after the other at each of the servers, for this time.
    fn make(fleet: &Fleet, keys: &[String], time: Duration) -> Self {
        let end = Instant::now() + time;
        let followed = thread::scope(|scope| {
            let visitors = (0..fleet.servers.len()).map(|server| {
                scope.spawn(move || {
                    let (mut api, mut followed) = (fleet.api(server), Self::default());
                    for key in keys.iter().cycle() {
                        followed.follow(&mut api, key);
                        if Instant::now() >= end {
                            break;
                        }
                    }
                    followed
                })
            });
            let visitors: Vec<_> = visitors.collect();
            let followed = visitors.into_iter().map(|visitor| visitor.join().unwrap());
            followed.collect::<Vec<Self>>()
        });
        followed.into_iter().fold(Self::default(), Self::with)
    }

    fn with(mut self, other: Self) -> Self {
        self.took.extend(other.took);
        self.failed.extend(other.failed);
        self
    }

    fn follow(&mut self, api: &mut Api, key: &str) {
        let begun = Instant::now();
        match api.follow(key) {
            Ok(answer) if answer.status == 302 => self.took.push(begun.elapsed()),
            Ok(answer) => self.failed.push(format!("{key}: {}", answer.status)),
            Err(error) => self.failed.push(format!("{key}: {error}")),
        }
    }

    /// The share of redirects among the answers.
    fn redirected(&self) -> f64 {
        let redirects = self.took.len() as f64;
        redirects / (redirects + self.failed.len() as f64)
    }

    fn percentile(&mut self, share: f64) -> Duration {
        self.took.sort_unstable();
        let place = (self.took.len() as f64 * share) as usize;
        self.took[place.min(self.took.len() - 1)]
    }
}

#[test]
fn a_check_reaches_the_caches_and_the_channel() {
    let fleet = curt_testkit::need!(Fleet::start(0, 2, &[]));
    let reach = || {
        let output = fleet.app.output(&["check", "--reach"]).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let cache = fleet.caches[1].line.address();
    let (is_sound, said) = reach();
    assert!(is_sound, "{said}");
    assert!(
        said.contains(&format!("memcached://{cache} answers")),
        "{said}"
    );
    let channel = fleet.channel.address();
    assert!(
        said.contains(&format!("redis://{channel} answers")),
        "{said}"
    );
    fleet.caches[1].line.set(Line::Cut);
    fleet.channel.set(Line::Cut);
    let (is_sound, said) = reach();
    assert!(!is_sound, "{said}");
    for away in [format!("memcached://{cache}"), format!("redis://{channel}")] {
        assert!(said.contains(&format!("{away} does not answer")), "{said}");
    }
}
