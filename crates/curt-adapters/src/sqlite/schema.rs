//! The numbered steps that make and change the tables: forward only, each in one transaction with its number.

use std::path::Path;

use curt_core::{ErrorKind, PortError, PortResult, names};
use rusqlite::Connection;

use super::failure::{BACKEND, port_error};

/// One step of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    pub number: u32,
    pub name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "first",
        sql: include_str!("../../migrations/sqlite/0001_first.sql"),
    },
    Migration {
        number: 2,
        name: "accounts",
        sql: include_str!("../../migrations/sqlite/0002_accounts.sql"),
    },
    Migration {
        number: 3,
        name: "clicks",
        sql: include_str!("../../migrations/sqlite/0003_clicks.sql"),
    },
    Migration {
        number: 4,
        name: "click streams",
        sql: include_str!("../../migrations/sqlite/0004_click_streams.sql"),
    },
    Migration {
        number: 5,
        name: "keys",
        sql: include_str!("../../migrations/sqlite/0005_keys.sql"),
    },
    Migration {
        number: 6,
        name: "API key parents",
        sql: include_str!("../../migrations/sqlite/0006_api_key_parents.sql"),
    },
    Migration {
        number: 7,
        name: "key generations",
        sql: include_str!("../../migrations/sqlite/0007_key_generations.sql"),
    },
];

/// "curt" in ASCII: tells our files from those of other programs.
const APPLICATION_ID: i32 = 0x6375_7274;

const OP: &str = "bring the tables up to date";

/// The steps that the file has not seen yet.
pub(super) fn pending(connection: &Connection, path: &Path) -> PortResult<&'static [Migration]> {
    let failed = |error| port_error(OP, path, &error);
    let version: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(failed)?;
    let application: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(failed)?;
    let tables: u32 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if application != APPLICATION_ID && tables > 0 {
        return Err(PortError::new(
            ErrorKind::Invalid,
            BACKEND,
            OP,
            format!(
                "{} is the database of another program: name another file",
                path.display()
            ),
        ));
    }
    let known = MIGRATIONS.len();
    match MIGRATIONS.get(version as usize..) {
        Some(rest) => Ok(rest),
        None => Err(PortError::new(
            ErrorKind::Invalid,
            BACKEND,
            OP,
            format!(
                "{} was written by a newer curt (schema {version}, this one knows {known}): use that one, or a backup \
                 from before its update",
                path.display()
            ),
        )),
    }
}

/// Applies what is pending and returns it.
pub(super) fn migrate(connection: &Connection, path: &Path) -> PortResult<&'static [Migration]> {
    let steps = pending(connection, path)?;
    for step in steps {
        let batch = format!(
            "BEGIN EXCLUSIVE;\n{}\nPRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {};\nCOMMIT;",
            step.sql, step.number
        );
        connection.execute_batch(&batch).map_err(|error| {
            // A step that failed half way leaves its transaction open.
            if let Err(undo) = connection.execute_batch("ROLLBACK") {
                tracing::debug!(error = %undo, "nothing to roll back");
            }
            port_error(OP, path, &error)
        })?;
        tracing::info!(
            event = names::event::MIGRATION_APPLIED,
            backend = BACKEND,
            number = step.number,
            name = step.name,
        );
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other_from_one() {
        for (index, step) in MIGRATIONS.iter().enumerate() {
            assert_eq!(step.number as usize, index + 1, "{}", step.name);
        }
    }
}
