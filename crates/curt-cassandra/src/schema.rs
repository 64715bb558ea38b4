//! The numbered steps that make the tables: forward only. The table `curt_schema` says how far they came.
//!
//! Cassandra has no lock around changes of its schema, and two servers that create one table at the same time would get
//! two. So every table has an id that follows from its name: whoever creates it creates the same one.

use curt_adapter_kit::{Migration, pending_migrations};
use curt_core::{ErrorKind, PortError, PortResult, names};
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use xxhash_rust::xxh3::xxh3_128;

use crate::address::Route;
use crate::connect::open_session;
use crate::failure::{BACKEND, corrupt, failed};
use crate::settings::CassandraSettings;
use curt_adapter_kit::Effect;

const OP: &str = "bring the tables up to date";

const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "first",
        sql: include_str!("../migrations/0001_first.cql"),
    },
    Migration {
        number: 2,
        name: "notes",
        sql: include_str!("../migrations/0002_notes.cql"),
    },
];

/// The steps that the keyspace has not seen yet.
pub(crate) async fn pending(
    route: &Route,
    settings: &CassandraSettings,
) -> PortResult<&'static [Migration]> {
    let session = open_session(route, settings).await?;
    steps_after(route, stored_version(&session, route).await?)
}

/// Makes the keyspace and the tables that are missing, waits until all nodes know them, and returns what was done.
pub(crate) async fn migrate(
    session: &Session,
    route: &Route,
    settings: &CassandraSettings,
) -> PortResult<&'static [Migration]> {
    let steps = steps_after(route, stored_version(session, route).await?)?;
    if steps.is_empty() {
        return Ok(steps);
    }
    let replication = settings.replication.to_cql();
    let keyspace =
        format!("CREATE KEYSPACE IF NOT EXISTS KEYSPACE WITH replication = {replication}");
    change(session, route, &keyspace).await?;
    change(
        session,
        route,
        "CREATE TABLE IF NOT EXISTS KEYSPACE.curt_schema (one int PRIMARY KEY, version int) WITH id = TABLE_ID",
    )
    .await?;
    for step in steps {
        for statement in statements(step.sql) {
            change(session, route, statement).await?;
        }
        let version = step.stored_version();
        let done = format!("INSERT INTO KEYSPACE.curt_schema (one, version) VALUES (1, {version})");
        change(session, route, &done).await?;
        tracing::info!(
            event = names::event::MIGRATION_APPLIED,
            backend = BACKEND,
            number = step.number,
            name = step.name,
        );
    }
    Ok(steps)
}

fn statements(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split(";\n").filter(|part| !part.trim().is_empty())
}

/// Runs one statement. The driver waits until the nodes agree on the schema.
async fn change(session: &Session, route: &Route, statement: &str) -> PortResult<()> {
    let text = statement.replace("KEYSPACE.", &format!("{}.", route.keyspace));
    let text = text.replace("KEYSPACE WITH", &format!("{} WITH", route.keyspace));
    let text = text.replace("TABLE_ID", &table_id(route, &text));
    let mut statement = scylla::statement::unprepared::Statement::new(text);
    statement.set_request_timeout(Some(std::time::Duration::from_secs(60)));
    let done = session.query_unpaged(statement, ()).await;
    done.map(drop)
        .map_err(|error| failed(OP, route, Effect::Unknown, error))
}

/// The id of the table that `statement` creates.
fn table_id(route: &Route, statement: &str) -> String {
    let name = statement
        .split_once(&format!(" {}.", route.keyspace))
        .and_then(|(_, rest)| rest.split([' ', '(']).next())
        .unwrap_or_default();
    let hash = xxh3_128(format!("curt:{}:{name}", route.keyspace).as_bytes());
    let hex = format!("{hash:032x}");
    // The digits that say how it was made: by a name.
    format!(
        "{}-{}-5{}-8{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..]
    )
}

async fn stored_version(session: &Session, route: &Route) -> PortResult<u32> {
    let read = format!(
        "SELECT version FROM {}.curt_schema WHERE one = 1",
        route.keyspace
    );
    let answer = match session.query_unpaged(read, ()).await {
        Ok(answer) => answer,
        Err(error) if is_missing(&error) => return Ok(0),
        Err(error) => return Err(failed(OP, route, Effect::None, error)),
    };
    let rows = answer
        .into_rows_result()
        .map_err(|error| corrupt(OP, error))?;
    let row = rows
        .maybe_first_row::<(i32,)>()
        .map_err(|error| corrupt(OP, error))?;
    Ok(row.map_or(0, |(version,)| version.cast_unsigned()))
}

/// Whether there is no such keyspace or table yet.
fn is_missing(error: &ExecutionError) -> bool {
    use scylla::errors::{DbError, RequestAttemptError};
    matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::Invalid, _))
    )
}

fn steps_after(route: &Route, version: u32) -> PortResult<&'static [Migration]> {
    pending_migrations(MIGRATIONS, version).map_err(|error| {
        let detail = format!("the tables at {route} were {error}");
        PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
    })
}
