//! The numbered steps that make and change the tables: forward only, each in one transaction with its number.

use std::path::Path;

use curt_adapter_kit::{Migration, pending_migrations};
use curt_core::{ErrorKind, PortError, PortResult, names};
use rusqlite::Connection;

use super::failure::{BACKEND, port_error};

/// The tables of one kind of file.
#[derive(Debug)]
pub(super) struct Schema {
    /// Tells our files from those of other programs, and from each other.
    application_id: i32,
    /// What such a file holds, for messages.
    holds: &'static str,
    /// Name of the thread that writes to it; 15 characters at most.
    pub(super) thread: &'static str,
    /// Nice value of that thread.
    pub(super) nice: i32,
    /// Whether pages that deletions free are given back to the disk.
    pub(super) shrinks: bool,
    steps: &'static [Migration],
}

/// Links, accounts, minted keys and cursors.
pub(super) static MAIN: Schema = Schema {
    // "curt" in ASCII.
    application_id: 0x6375_7274,
    holds: "links",
    thread: "curt-sqlite",
    nice: 0,
    shrinks: false,
    steps: &[
        Migration {
            number: 1,
            name: "first",
            sql: include_str!("../migrations/0001_first.sql"),
        },
        Migration {
            number: 2,
            name: "nodes",
            sql: include_str!("../migrations/0002_nodes.sql"),
        },
        Migration {
            number: 3,
            name: "moves",
            sql: include_str!("../migrations/0003_moves.sql"),
        },
        Migration {
            number: 4,
            name: "invites",
            sql: include_str!("../migrations/0004_invites.sql"),
        },
    ],
};

/// What is counted about clicks, and the clicks.
pub(super) static CLICKS: Schema = Schema {
    // "curc" in ASCII.
    application_id: 0x6375_7263,
    holds: "clicks",
    thread: "curt-clicks-db",
    // No request waits for clicks to be counted: what serves requests comes first, and a quarter of a core is left when
    // every core is busy.
    nice: 5,
    shrinks: true,
    steps: &[Migration {
        number: 1,
        name: "first",
        sql: include_str!("../migrations/clicks_0001_first.sql"),
    }],
};

const OP: &str = "bring the tables up to date";

impl Schema {
    /// The steps that the file has not seen yet.
    pub(super) fn pending(
        &self,
        connection: &Connection,
        path: &Path,
    ) -> PortResult<&'static [Migration]> {
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
        if application != self.application_id && tables > 0 {
            return Err(self.foreign(application, path));
        }
        pending_migrations(self.steps, version)
            .map_err(|error| invalid(format!("{} was {error}", path.display())))
    }

    fn foreign(&self, application: i32, path: &Path) -> PortError {
        let ours = [&MAIN, &CLICKS].map(|schema| (schema.application_id, schema.holds));
        let found = ours.iter().find(|(id, _)| *id == application);
        let what = match found {
            Some((_, holds)) => format!("holds {holds} of curt"),
            None => "is the database of another program".to_owned(),
        };
        invalid(format!(
            "{} {what}: name another file for {}",
            path.display(),
            self.holds
        ))
    }

    /// Applies what is pending and returns it.
    pub(super) fn migrate(
        &self,
        connection: &Connection,
        path: &Path,
    ) -> PortResult<&'static [Migration]> {
        let steps = self.pending(connection, path)?;
        for step in steps {
            let batch = format!(
                "BEGIN EXCLUSIVE;\n{}\nPRAGMA application_id = {};\nPRAGMA user_version = {};\nCOMMIT;",
                step.sql,
                self.application_id,
                step.stored_version()
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
                file = %path.display(),
                number = step.number,
                name = step.name,
            );
        }
        Ok(steps)
    }
}

fn invalid(detail: String) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other_from_one() {
        for schema in [&MAIN, &CLICKS] {
            for (index, step) in schema.steps.iter().enumerate() {
                assert_eq!(step.number as usize, index + 1, "{}", step.name);
            }
        }
    }
}
