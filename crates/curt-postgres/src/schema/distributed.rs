//! Tables in an engine that spreads them over servers: no lock over all servers, no transaction over statements that make
//! tables. Each statement may be run again, and by several processes at once.

use curt_core::PortResult;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::{MigrationSet, OP, STORE_VERSION, VERSION, rest};
use crate::engine::{Engine, Session, column};
use crate::failure::failed;
use curt_adapter_kit::{Effect, Migration};

const MAKE_VERSIONS: &str =
    "CREATE TABLE IF NOT EXISTS curt_schema (part text PRIMARY KEY, version bigint NOT NULL)";
/// How often a statement is run that met others which make the same table.
const TRIES_MAX: usize = 20;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

pub(super) async fn apply(
    engine: &Engine,
    client: &Session,
    set: &'static MigrationSet,
) -> PortResult<&'static [Migration]> {
    let failure = |error: Error| failed(OP, engine.address(), Effect::Unknown, error);
    run(client, MAKE_VERSIONS).await.map_err(failure)?;
    let found = client.query_opt(VERSION, &[&set.name]).await;
    let found = found.map_err(failure)?;
    let version = found.as_ref().map_or(Ok(0), |row| column(OP, row, 0))?;
    let steps = rest(engine, set, version)?;
    for step in steps {
        for statement in statements(step.sql) {
            run(client, &statement).await.map_err(failure)?;
        }
        let version = i64::from(step.stored_version());
        client
            .execute(STORE_VERSION, &[&set.name, &version])
            .await
            .map_err(failure)?;
    }
    Ok(steps)
}

/// Runs a statement, and again where another process made the same at the same time.
async fn run(client: &Session, statement: &str) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        match client.batch_execute(statement).await {
            Err(error) if tries < TRIES_MAX && is_race(&error) => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

fn is_race(error: &Error) -> bool {
    let races = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| races.contains(code))
}

/// The statements of a script, without its comments.
pub(crate) fn statements(script: &str) -> Vec<String> {
    let lines = script
        .lines()
        .map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    let code = lines.collect::<Vec<_>>().join("\n");
    let statements = code.split(';').map(|statement| statement.trim().to_owned());
    statements
        .filter(|statement| !statement.is_empty())
        .collect()
}
