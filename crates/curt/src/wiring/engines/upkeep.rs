//! What is done with all engines of a process: asked for a sign of life, brought up to date, closed.

use curt_core::PortResult;

use super::{EngineAddress, Engines, Opened};

/// A database and what of its tables was, or would be, brought up to date.
#[derive(Clone, Debug)]
pub(crate) struct Migrated {
    pub(crate) address: EngineAddress,
    /// Number and name of each step.
    pub(crate) steps: Vec<(u32, &'static str)>,
}

impl Engines {
    /// Asks every engine that was opened for a sign of life.
    pub(crate) async fn reach(&self) -> Vec<(EngineAddress, PortResult<()>)> {
        let mut reached = Vec::with_capacity(self.opened.len());
        for (number, (address, opened)) in self.opened.iter().enumerate() {
            // An engine may have connections for links and others for clicks: one answer will do.
            if self.opened[..number]
                .iter()
                .any(|(known, _)| known == address)
            {
                continue;
            }
            reached.push((address.clone(), opened.ping().await));
        }
        reached
    }

    /// Brings the tables of the opened databases up to date, or only says what that would take. SQLite has done so
    /// when it was opened.
    #[cfg_attr(
        not(any(
            feature = "cassandra",
            feature = "dynamodb",
            feature = "mysql",
            feature = "postgres"
        )),
        expect(unused, reason = "there is nothing to migrate")
    )]
    pub(crate) async fn migrate(&self, dry_run: bool) -> PortResult<Vec<Migrated>> {
        let mut migrated = Vec::new();
        #[cfg(feature = "postgres")]
        for (address, set) in &self.tables {
            let Some((_, Opened::Postgres(database))) =
                self.opened.iter().find(|(opened, _)| opened == address)
            else {
                continue;
            };
            let steps = match dry_run {
                true => database.pending(set).await?,
                false => database.migrate(set).await?,
            };
            let steps = steps.iter().map(|step| (step.number, step.name)).collect();
            migrated.push(Migrated {
                address: address.clone(),
                steps,
            });
        }
        #[cfg(any(feature = "cassandra", feature = "dynamodb", feature = "mysql"))]
        for (number, (address, opened)) in self.opened.iter().enumerate() {
            // Links and clicks have connections of their own to the same tables.
            let before = &self.opened[..number];
            if before.iter().any(|(known, _)| known == address) {
                continue;
            }
            let steps = match (opened, dry_run) {
                #[cfg(feature = "mysql")]
                (Opened::Mysql(database), true) => database.pending().await?,
                #[cfg(feature = "mysql")]
                (Opened::Mysql(database), false) => database.migrate().await?,
                #[cfg(feature = "cassandra")]
                (Opened::Cassandra(cluster), true) => cluster.pending().await?,
                #[cfg(feature = "cassandra")]
                (Opened::Cassandra(cluster), false) => cluster.migrate().await?,
                #[cfg(feature = "dynamodb")]
                (Opened::DynamoDb(tables), true) => tables.pending().await?,
                #[cfg(feature = "dynamodb")]
                (Opened::DynamoDb(tables), false) => tables.migrate().await?,
                _ => continue,
            };
            let steps = steps.iter().map(|step| (step.number, step.name)).collect();
            migrated.push(Migrated {
                address: address.clone(),
                steps,
            });
        }
        Ok(migrated)
    }

    /// Waits for what is being written and closes the files.
    pub(crate) async fn close(&self) {
        for (_, opened) in &self.opened {
            if let Opened::Sqlite(database) = opened {
                database.close().await;
            }
        }
    }
}
