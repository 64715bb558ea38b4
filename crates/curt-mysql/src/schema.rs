//! The numbered steps that make and change the tables: forward only. The table `curt_schema` says how far they came.

use curt_core::{ErrorKind, PortError, PortResult, names};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::engine::Engine;
use super::failure::{BACKEND, failed};
use curt_adapter_kit::{Effect, Migration, pending_migrations};

const OP: &str = "bring the tables up to date";

const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    name: "first",
    sql: include_str!("../migrations/keys_0001_first.sql"),
}];

/// The steps that the database has not seen yet.
pub(super) async fn pending(engine: &Engine) -> PortResult<&'static [Migration]> {
    let mut connection = engine.connection(OP).await?;
    let version = version(&mut connection).await;
    let version = version.map_err(|error| failed(OP, engine.address(), Effect::None, error))?;
    rest(engine, version)
}

/// Applies what is pending and returns it. Many processes may do so at once: the lock ends with the session.
pub(super) async fn migrate(engine: &Engine) -> PortResult<&'static [Migration]> {
    if pending(engine).await?.is_empty() {
        return Ok(&[]);
    }
    let mut connection = engine.connection(OP).await?;
    let failed = |error| failed(OP, engine.address(), Effect::Unknown, error);
    lock(&mut connection).await.map_err(failed)?;
    // Another process may have been faster.
    let steps = rest(engine, version(&mut connection).await.map_err(failed)?)?;
    for step in steps {
        apply(&mut connection, step).await.map_err(failed)?;
        tracing::info!(
            event = names::event::MIGRATION_APPLIED,
            backend = BACKEND,
            number = step.number,
            name = step.name,
        );
    }
    let unlock = "DO RELEASE_LOCK(CONCAT('curt:', DATABASE()))";
    connection.query_drop(unlock).await.map_err(failed)?;
    Ok(steps)
}

async fn lock(connection: &mut Conn) -> Result<(), Error> {
    let lock = "SELECT GET_LOCK(CONCAT('curt:', DATABASE()), 60)";
    match connection.query_first::<Option<u8>, _>(lock).await? {
        Some(Some(1)) => Ok(()),
        _ => Err(Error::Io(
            std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
        )),
    }
}

async fn version(connection: &mut Conn) -> Result<u32, Error> {
    let known = "SELECT COUNT(*) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = 'curt_schema'";
    if connection.query_first::<u64, _>(known).await? != Some(1) {
        return Ok(0);
    }
    let version = "SELECT version FROM curt_schema";
    Ok(connection.query_first(version).await?.unwrap_or_default())
}

fn rest(engine: &Engine, version: u32) -> PortResult<&'static [Migration]> {
    pending_migrations(MIGRATIONS, version).map_err(|error| {
        let detail = format!("the tables at {} were {error}", engine.address());
        PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
    })
}

async fn apply(connection: &mut Conn, step: &Migration) -> Result<(), Error> {
    for statement in step.sql.split(";\n").filter(|part| !part.trim().is_empty()) {
        connection.query_drop(statement).await?;
    }
    connection
        .query_drop(
            "CREATE TABLE IF NOT EXISTS curt_schema \
             (one TINYINT PRIMARY KEY, version INT UNSIGNED NOT NULL) ENGINE = InnoDB",
        )
        .await?;
    connection
        .exec_drop(
            "REPLACE INTO curt_schema VALUES (1, ?)",
            (step.stored_version(),),
        )
        .await
}
