//! The numbered steps that make and change the tables: forward only. Each part of the product that may have a database
//! of its own has a set of its own, and the table `curt_schema` says how far each set has come.

mod distributed;

#[cfg(test)]
pub(crate) use self::distributed::statements as script_statements;

use std::sync::Arc;
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult, names};
use tokio::sync::OnceCell;
use tokio_postgres::Error;

use crate::engine::{Engine, Session, column};
use crate::failure::{BACKEND, failed};
use curt_adapter_kit::{Effect, Migration, pending_migrations};

const OP: &str = "bring the tables up to date";

/// "curt" in ASCII: the advisory lock under which tables are changed, so that many processes can start at once.
const LOCK: i64 = 0x6375_7274;

/// The tables of one part of the product.
#[derive(Debug)]
pub struct MigrationSet {
    pub name: &'static str,
    pub(crate) steps: &'static [Migration],
}

const fn step(number: u32, name: &'static str, sql: &'static str) -> Migration {
    Migration { number, name, sql }
}

/// Minted keys.
pub static KEYS: MigrationSet = MigrationSet {
    name: "keys",
    steps: &[step(
        1,
        "first",
        include_str!("../../migrations/keys_0001_first.sql"),
    )],
};

/// Offsets into key files.
pub static CURSORS: MigrationSet = MigrationSet {
    name: "cursors",
    steps: &[step(
        1,
        "first",
        include_str!("../../migrations/cursors_0001_first.sql"),
    )],
};

/// Links, and requests that may be repeated.
pub static LINKS: MigrationSet = MigrationSet {
    name: "links",
    steps: &[
        step(
            1,
            "first",
            include_str!("../../migrations/links_0001_first.sql"),
        ),
        step(
            2,
            "nodes",
            include_str!("../../migrations/links_0002_nodes.sql"),
        ),
        step(
            3,
            "moves",
            include_str!("../../migrations/links_0003_moves.sql"),
        ),
    ],
};

/// Links, and all that belongs to them, in an engine that spreads tables over its own servers.
pub static DISTRIBUTED_LINKS: MigrationSet = MigrationSet {
    name: "distributed_links",
    steps: &[step(
        1,
        "first",
        include_str!("../../migrations/distributed_links_0001_first.sql"),
    )],
};

/// The map of shards to nodes.
pub static SHARD_MAP: MigrationSet = MigrationSet {
    name: "shard_map",
    steps: &[step(
        1,
        "first",
        include_str!("../../migrations/shard_map_0001_first.sql"),
    )],
};

/// Users, and everything that belongs to one.
pub static ACCOUNTS: MigrationSet = MigrationSet {
    name: "accounts",
    steps: &[
        step(
            1,
            "first",
            include_str!("../../migrations/accounts_0001_first.sql"),
        ),
        step(
            2,
            "invites",
            include_str!("../../migrations/accounts_0002_invites.sql"),
        ),
    ],
};

/// What is counted about clicks, and the clicks.
pub static CLICKS: MigrationSet = MigrationSet {
    name: "clicks",
    steps: &[step(
        1,
        "first",
        include_str!("../../migrations/clicks_0001_first.sql"),
    )],
};

/// An engine whose tables of one set are brought up to date before the first use. Not at start: a server must start,
/// and live on its buffers, while the keys database is away.
#[derive(Debug)]
pub(crate) struct Tables {
    engine: Arc<Engine>,
    set: &'static MigrationSet,
    ready: OnceCell<()>,
}

impl Tables {
    pub(crate) fn new(engine: Arc<Engine>, set: &'static MigrationSet) -> Self {
        Self {
            engine,
            set,
            ready: OnceCell::new(),
        }
    }

    pub(crate) fn write_timeout(&self) -> Duration {
        self.engine.write_timeout()
    }

    /// How long replicas may not show what was written; `None` where none is read.
    pub(crate) fn replica_lag_max(&self) -> Option<Duration> {
        self.engine.replica_lag_max()
    }

    /// The engine for look-ups. A standby has the tables when the primary, which is away, had them.
    pub(crate) async fn lookups(&self) -> PortResult<&Engine> {
        match self.engine().await {
            Err(failure) if failure.is_transient() && self.engine.has_standby() => Ok(&self.engine),
            ready => ready,
        }
    }

    pub(crate) async fn engine(&self) -> PortResult<&Engine> {
        let ready = || async { migrate(&self.engine, self.set).await.map(drop) };
        self.ready.get_or_try_init(ready).await?;
        Ok(&self.engine)
    }
}

/// The steps that the database has not seen yet.
pub(crate) async fn pending(
    engine: &Engine,
    set: &'static MigrationSet,
) -> PortResult<&'static [Migration]> {
    let known = "SELECT count(*) > 0 FROM information_schema.tables \
         WHERE table_schema = current_schema() AND table_name = 'curt_schema'";
    let rows = engine.read(OP, known, &[]).await?;
    if !rows.first().map_or(Ok(false), |row| column(OP, row, 0))? {
        return Ok(set.steps);
    }
    let rows = engine.read(OP, VERSION, &[&set.name]).await?;
    let version = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    rest(engine, set, version)
}

const STORE_VERSION: &str = "INSERT INTO curt_schema (part, version) VALUES ($1, $2) \
     ON CONFLICT (part) DO UPDATE SET version = excluded.version";

const VERSION: &str = "SELECT version::bigint FROM curt_schema WHERE part = $1";

fn rest(
    engine: &Engine,
    set: &'static MigrationSet,
    version: i64,
) -> PortResult<&'static [Migration]> {
    let version = u32::try_from(version).unwrap_or(u32::MAX);
    pending_migrations(set.steps, version).map_err(|error| {
        let detail = format!(
            "the tables for {} at {} were {error}",
            set.name,
            engine.address()
        );
        PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
    })
}

/// Applies what is pending and returns it.
pub(crate) async fn migrate(
    engine: &Engine,
    set: &'static MigrationSet,
) -> PortResult<&'static [Migration]> {
    if pending(engine, set).await?.is_empty() {
        return Ok(&[]);
    }
    let client = engine.client(OP).await?;
    let done = match engine.address().is_distributed {
        true => {
            let work = distributed::apply(engine, &client, set);
            engine.without_deadline(OP, work).await
        }
        false => {
            let work = apply(engine, &client, set);
            engine.without_deadline(OP, work).await
        }
    };
    match &done {
        Ok(_) => client.release(),
        // Ends the transaction with the session, whatever state it is in.
        Err(_) => client.close(),
    }
    for step in done.as_deref().unwrap_or_default() {
        tracing::info!(
            event = names::event::MIGRATION_APPLIED,
            backend = BACKEND,
            set = set.name,
            number = step.number,
            name = step.name,
        );
    }
    done
}

/// Has no deadline of ours: building an index over many rows takes as long as it takes.
async fn apply(
    engine: &Engine,
    client: &Session,
    set: &'static MigrationSet,
) -> PortResult<&'static [Migration]> {
    let effect = |effect| move |error: Error| failed(OP, engine.address(), effect, error);
    let begin = format!(
        "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'; \
         SELECT pg_advisory_xact_lock({LOCK}); \
         CREATE TABLE IF NOT EXISTS curt_schema (part text PRIMARY KEY, version integer NOT NULL)"
    );
    client
        .batch_execute(&begin)
        .await
        .map_err(effect(Effect::None))?;
    let found = client.query_opt(VERSION, &[&set.name]).await;
    let found = found.map_err(effect(Effect::None))?;
    let version = found.as_ref().map_or(Ok(0), |row| column(OP, row, 0))?;
    // Another process may have been faster.
    let steps = rest(engine, set, version)?;
    for step in steps {
        client
            .batch_execute(step.sql)
            .await
            .map_err(effect(Effect::None))?;
    }
    let version = set.steps.last().map_or(0, Migration::stored_version);
    let version = i32::try_from(version).unwrap_or(i32::MAX);
    client
        .execute(STORE_VERSION, &[&set.name, &version])
        .await
        .map_err(effect(Effect::None))?;
    client
        .batch_execute("COMMIT")
        .await
        .map_err(effect(Effect::Unknown))?;
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other_from_one() {
        for set in [
            &KEYS,
            &CURSORS,
            &LINKS,
            &DISTRIBUTED_LINKS,
            &SHARD_MAP,
            &ACCOUNTS,
            &CLICKS,
        ] {
            for (index, step) in set.steps.iter().enumerate() {
                assert_eq!(step.number as usize, index + 1, "{}", step.name);
            }
        }
    }
}
