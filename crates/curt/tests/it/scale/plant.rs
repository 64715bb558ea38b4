//! An installation of many processes over real engines.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;
use curt_testkit::engines::postgres::{self, Database};
use curt_testkit::engines::redis;
use curt_testkit::engines::unique;
use curt_testkit::engines::zookeeper::{self, Ensemble};
use curt_testkit::process::{App, Server};
use serde_json::Value;

use crate::alone::Company;
use crate::length::time_max;
use crate::site::STOP_TIME_MAX;

/// The roles of a server that answers users.
pub(crate) const FRONT: &[&str] = &["redirect", "api", "purge", "clicks"];

/// How many of each engine.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) ledgers: usize,
    pub(crate) pools: usize,
}

/// The engines and the settings that lead to them. Every process started here uses the same.
pub(crate) struct Plant {
    app: App,
    token: String,
    started: AtomicU32,
    pub(crate) links: Database,
    pub(crate) ledgers: Vec<Database>,
    pub(crate) pools: Vec<redis::Server>,
    _zookeeper: Arc<Ensemble>,
    _company: Company,
}

impl Plant {
    pub(crate) fn start(shape: Shape, settings: &[(&str, &str)]) -> Result<Self> {
        let company = Company::join();
        let server = postgres::shared()?;
        let links = server.database("links")?;
        let ledgers: Vec<Database> = (0..shape.ledgers)
            .map(|_| server.database("keys"))
            .collect::<Result<_>>()?;
        let pools: Vec<redis::Server> = (0..shape.pools)
            .map(|_| redis::Server::start())
            .collect::<Result<_>>()?;
        let zookeeper = zookeeper::shared()?;
        let leases = format!("zookeeper://{}/{}", zookeeper.addresses(), unique("curt"));
        let list = |urls: Vec<String>| urls.join(",");
        let app = App::new(env!("CARGO_BIN_EXE_curt"))?
            .ready_within(Duration::from_secs(120))
            .setting("store.links", links.url())
            .setting(
                "store.keys",
                list(ledgers.iter().map(Database::url).collect()),
            )
            .setting(
                "store.pool",
                list(pools.iter().map(redis::Server::url).collect()),
            )
            .setting("store.leases", leases)
            // The machine may be busy, and nothing is done to the links database here.
            .setting("postgres.lookup_timeout", "30s")
            .setting("postgres.write_timeout", "30s")
            // There is no balancer that would have to notice.
            .setting("server.drain_delay", "0s")
            .setting("log.level", "warn");
        let app = settings
            .iter()
            .fold(app, |app, (key, value)| app.setting(key, value));
        app.run(&["user", "add", "tests@example.com"])?;
        let token = app.run(&["api-key", "add", "tests", "--user", "tests@example.com"])?;
        Ok(Self {
            app,
            token: token.trim().to_owned(),
            started: AtomicU32::new(0),
            links,
            ledgers,
            pools,
            _zookeeper: zookeeper,
            _company: company,
        })
    }

    /// The API key that clients use.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Starts a process with these roles, in a folder of its own, as on a machine of its own.
    pub(crate) fn process(&self, roles: &[&str]) -> Server {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let folder = format!("data_dir=data-{number}");
        let arguments = [roles, &["--set", &folder]].concat();
        self.app.start_with(&arguments).unwrap()
    }

    /// What `curt keys status --json` prints.
    pub(crate) fn status(&self) -> Status {
        let printed = self.app.run(&["keys", "status", "--json"]).unwrap();
        Status(serde_json::from_str(&printed).unwrap())
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.app.run(arguments).unwrap()
    }

    /// What a command writes to its error output, and whether it succeeds.
    pub(crate) fn said(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.app.output(arguments).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    }

    /// Keys that wait in a pool shard, by the engine's own account.
    pub(crate) fn depth(&self, shard: usize) -> u64 {
        let depth = self.pools[shard].run_command(&["LLEN", &list(shard)]);
        depth.unwrap().trim().parse().unwrap()
    }

    /// The keys of all links.
    pub(crate) fn used_keys(&self) -> HashSet<String> {
        let keys = self.links.sql("select key from links").unwrap();
        keys.lines().map(str::to_owned).collect()
    }

    /// Leaves at most so many keys in a pool shard, and at least one.
    pub(crate) fn trim(&self, shard: usize, keys: u64) {
        let last = keys - 1;
        let trim = ["LTRIM", &list(shard), "0", &last.to_string()];
        self.pools[shard].run_command(&trim).unwrap();
    }
}

/// The list of a pool shard.
pub(crate) fn list(shard: usize) -> String {
    format!("available_keys:{{{shard}}}")
}

/// Ends the process as an operator does.
pub(crate) fn stop(server: Server) {
    let logs = server.logs();
    let ended = server.terminate(time_max(STOP_TIME_MAX)).unwrap();
    assert!(ended.success(), "{ended}: {logs}");
}

pub(crate) struct Status(pub(crate) Value);

impl Status {
    /// Keys in a stage of K-2.
    pub(crate) fn keys(&self, stage: &str) -> Result<u64, String> {
        let keys = self.0["keys"][stage].as_u64();
        keys.ok_or_else(|| format!("{stage} is not known: {}", self.0))
    }
}
