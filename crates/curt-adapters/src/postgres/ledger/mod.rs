//! The key ledger in the forms of the documents.
//!
//! All forms share batches, totals and the rule of what is unused, so that a deployment can change its form while no
//! process runs. They differ in what a take does with the rows of its keys: see [`LedgerForm`].
//!
//! The order of the documents, "select an unused key, then mark it", hands a key out twice when two do it at once. Here
//! both happen in one statement that has the rows locked.

mod sql;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{BatchId, KeyLedger, LedgerCounts, OpenBatch};
use curt_core::{ErrorKind, Key, PortError, PortResult, UnixMillis};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::engine::{Engine, Step, Value, column};
use super::failure::{BACKEND, sql_state};
use super::schema::{KEYS, Tables};

/// How often a take looks for the batch that another taker of the same name made, before it gives up.
const BATCH_LOOKS: usize = 8;

/// What a take does with the rows of its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LedgerForm {
    /// Deletes them: the smallest ledger. Takers never wait for each other, but pass the dead rows that vacuum has not
    /// removed yet.
    #[default]
    Delete,
    /// Marks them as used: the ledger never mints those keys again. Dead rows as with `Delete`.
    Status,
    /// Moves them to the table `keys_used`: as `Status`, and the unused keys stay together.
    UsedTable,
    /// Leaves them and moves a cursor past them: no dead rows, whatever the load; never minted again. Takers wait for
    /// each other for the moment of a take, and so do minters for that of an insert.
    Ranges,
}

pub(super) struct PostgresLedger {
    tables: Tables,
    form: LedgerForm,
}

impl PostgresLedger {
    pub(super) fn new(engine: Arc<Engine>, form: LedgerForm) -> Self {
        Self {
            tables: Tables::new(engine, &KEYS),
            form,
        }
    }

    /// Runs what adds unused rows, with what the form needs around it. The first answer is that of `sql`.
    async fn add(
        &self,
        op: &'static str,
        add: Step<'_>,
        undo: Option<Step<'_>>,
    ) -> PortResult<Vec<Vec<Row>>> {
        let engine = self.tables.engine().await?;
        let lock = Step {
            sql: sql::LOCK_TAIL,
            values: &[],
        };
        match (self.form, undo) {
            (LedgerForm::Ranges, _) => {
                let mut answers = engine.transact(op, &[lock, add]).await?;
                answers.remove(0);
                Ok(answers)
            }
            (_, Some(undo)) => engine.transact(op, &[add, undo]).await,
            (_, None) => Ok(vec![engine.write(op, add.sql, add.values).await?]),
        }
    }

    async fn take_rows(
        &self,
        op: &'static str,
        batch: &str,
        limit: i64,
        now: i64,
    ) -> PortResult<Vec<Row>> {
        let engine = self.tables.engine().await?;
        let values: &[Value<'_>] = &[&batch, &limit, &now];
        let sql = match self.form {
            LedgerForm::Delete => sql::TAKE_DELETING,
            LedgerForm::Status => sql::TAKE_MARKING,
            LedgerForm::UsedTable => sql::TAKE_MOVING,
            LedgerForm::Ranges => {
                let lock = Step {
                    sql: sql::LOCK_HEAD,
                    values: &[],
                };
                let take = Step {
                    sql: sql::TAKE_RANGE,
                    values,
                };
                let mut answers = engine.transact(op, &[lock, take]).await?;
                return Ok(answers.pop().unwrap_or_default());
            }
        };
        engine.write(op, sql, values).await
    }
}

#[async_trait]
impl KeyLedger for PostgresLedger {
    async fn insert(&self, keys: &[Key]) -> PortResult<u64> {
        const OP: &str = "add minted keys";
        let texts = texts(keys);
        let values: &[Value<'_>] = &[&texts];
        let step = |sql| Step { sql, values };
        let (add, undo) = match self.form {
            LedgerForm::Delete => (step(sql::INSERT), Some(step(sql::UNINSERT))),
            LedgerForm::UsedTable => (
                step(sql::INSERT_UNLESS_MOVED),
                Some(step(sql::UNINSERT_MOVED)),
            ),
            // Every key that was ever known still has its row.
            LedgerForm::Status | LedgerForm::Ranges => (step(sql::INSERT), None),
        };
        let answers = self.add(OP, add, undo).await?;
        difference(OP, &answers)
    }

    async fn take(&self, batch: &BatchId, limit: usize, now: UnixMillis) -> PortResult<Vec<Key>> {
        const OP: &str = "take keys";
        let (name, count) = (&*batch.0, i64::try_from(limit).unwrap_or(i64::MAX));
        for _ in 0..BATCH_LOOKS {
            let rows = match self.take_rows(OP, name, count, now.0).await {
                // Another taker of the same name was faster; its batch is visible by now, unless it is closed again.
                Err(error) if sql_state(&error) == Some(&SqlState::UNIQUE_VIOLATION) => {
                    let engine = self.tables.engine().await?;
                    let rows = engine.read(OP, sql::FIND_BATCH, &[&name]).await?;
                    if rows.is_empty() {
                        continue;
                    }
                    rows
                }
                other => other?,
            };
            return rows.first().map_or(Ok(Vec::new()), |row| keys(OP, row, 0));
        }
        Err(PortError::new(
            ErrorKind::Throttled,
            BACKEND,
            OP,
            "others keep taking and closing batches of the same name",
        ))
    }

    async fn close(&self, batch: &BatchId) -> PortResult<()> {
        let engine = self.tables.engine().await?;
        engine
            .write("close a batch of keys", sql::CLOSE, &[&&*batch.0])
            .await
            .map(drop)
    }

    async fn give_back(&self, batch: &BatchId, unused: &[Key]) -> PortResult<u64> {
        const OP: &str = "give keys back";
        let texts = texts(unused);
        let give_back = Step {
            sql: sql::GIVE_BACK,
            values: &[&&*batch.0, &texts],
        };
        let answers = self.add(OP, give_back, None).await?;
        difference(OP, &answers)
    }

    async fn open_batches(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<OpenBatch>> {
        const OP: &str = "list open batches of keys";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let engine = self.tables.engine().await?;
        let rows = engine
            .read(OP, sql::OPEN_BATCHES, &[&before.0, &limit])
            .await?;
        rows.iter()
            .map(|row| {
                Ok(OpenBatch {
                    id: BatchId(column::<String>(OP, row, 0)?.into()),
                    taken_at: UnixMillis(column(OP, row, 1)?),
                    keys: keys(OP, row, 2)?,
                })
            })
            .collect()
    }

    async fn recycle(&self, keys: &[Key]) -> PortResult<u64> {
        const OP: &str = "recycle keys";
        let texts = texts(keys);
        let values: &[Value<'_>] = &[&texts];
        let step = |sql| Step { sql, values };
        let undo = match self.form {
            LedgerForm::Delete => Some(step(sql::UNRECYCLE_DELETING)),
            LedgerForm::Status => Some(step(sql::UNRECYCLE_MARKING)),
            LedgerForm::UsedTable => Some(step(sql::UNRECYCLE_MOVING)),
            // A take changes no row that we could have waited for.
            LedgerForm::Ranges => None,
        };
        let answers = self.add(OP, step(sql::RECYCLE), undo).await?;
        difference(OP, &answers)
    }

    async fn counts(&self) -> PortResult<LedgerCounts> {
        const OP: &str = "count keys";
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, sql::COUNTS, &[]).await?;
        let total = |index| -> PortResult<u64> {
            let sum: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, index))?;
            Ok(u64::try_from(sum).unwrap_or(0))
        };
        Ok(LedgerCounts {
            minted: total(0)?,
            free: total(1)?,
            open: total(2)?,
            recycled: total(3)?,
        })
    }
}

fn texts(keys: &[Key]) -> Vec<&str> {
    keys.iter().map(Key::as_str).collect()
}

fn keys(op: &'static str, row: &Row, index: usize) -> PortResult<Vec<Key>> {
    let texts: Vec<&str> = column(op, row, index)?;
    texts
        .into_iter()
        .map(|text| {
            Key::parse(text).map_err(|error| {
                let detail = format!("{text:?} is stored as a key: restore a backup");
                PortError::new(ErrorKind::Corrupt, BACKEND, op, detail).with_source(error)
            })
        })
        .collect()
}

/// What the first step did, less what the second one undid.
fn difference(op: &'static str, answers: &[Vec<Row>]) -> PortResult<u64> {
    let number = |step: usize| -> PortResult<i64> {
        let row = answers.get(step).and_then(|rows| rows.first());
        row.map_or(Ok(0), |row| column(op, row, 0))
    };
    Ok(u64::try_from(number(0)? - number(1)?).unwrap_or(0))
}
