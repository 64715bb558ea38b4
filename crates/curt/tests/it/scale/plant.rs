//! An installation of many processes over real engines.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use curt_testkit::engines::postgres::{self, Database};
use curt_testkit::engines::redis;
use curt_testkit::engines::unique;
use curt_testkit::engines::zookeeper::{self, Ensemble};
use curt_testkit::process::{App, Server};
use serde_json::Value;

use crate::site::STOP_TIME_MAX;

/// The roles of a server that answers users.
pub(crate) const FRONT: &[&str] = &["redirect", "api", "purge"];

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
    pub(crate) links: Database,
    pub(crate) ledgers: Vec<Database>,
    pub(crate) pools: Vec<redis::Server>,
    _zookeeper: Arc<Ensemble>,
}

impl Plant {
    pub(crate) fn start(shape: Shape, settings: &[(&str, &str)]) -> Result<Self> {
        let server = postgres::shared()?;
        let links = server.database("links")?;
        let ledgers: Vec<Database> = (0..shape.ledgers)
            .map(|_| server.database("keys"))
            .collect::<Result<_>>()?;
        let pools: Vec<redis::Server> = (0..shape.pools)
            .map(|_| redis::Server::start())
            .collect::<Result<_>>()?;
        let zookeeper = zookeeper::shared()?;
        let locks = format!("zookeeper://{}/{}", zookeeper.addresses(), unique("curt"));
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
            .setting("store.locks", locks)
            .setting("log.level", "warn");
        let app = settings
            .iter()
            .fold(app, |app, (key, value)| app.setting(key, value));
        app.run(&["user", "add", "tests@example.com"])?;
        let token = app.run(&["key", "add", "tests", "--user", "tests@example.com"])?;
        Ok(Self {
            app,
            token: token.trim().to_owned(),
            links,
            ledgers,
            pools,
            _zookeeper: zookeeper,
        })
    }

    /// The API key that clients use.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Starts a process with these roles.
    pub(crate) fn process(&self, roles: &[&str]) -> Server {
        self.app.start_with(roles).unwrap()
    }

    /// What `curt keys status --json` prints.
    pub(crate) fn status(&self) -> Status {
        let printed = self.app.run(&["keys", "status", "--json"]).unwrap();
        Status(serde_json::from_str(&printed).unwrap())
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.app.run(arguments).unwrap()
    }
}

/// Ends the process as an operator does.
pub(crate) fn stop(server: Server) {
    let logs = server.logs();
    let ended = server.terminate(STOP_TIME_MAX).unwrap();
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
