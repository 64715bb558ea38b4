//! The key ledger in the forms of the documents.
//!
//! All forms share batches, totals and the rule of what is unused, so that a deployment can change its form while no
//! process runs. They differ in what a take does with the rows of its keys: see [`LedgerForm`]. Takers never wait for each
//! other, but with `Delete` and `Status` pass the dead rows that vacuum has not removed yet; with `Cursor` there are
//! none, and takers wait for each other for the moment of a take, and minters for that of an insert.
//!
//! The order of the documents, "select an unused key, then mark it", hands a key out twice when two do it at once. Here
//! both happen in one statement that has the rows locked.

mod sql;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{BatchId, Finding, KeyLedger, LedgerCounts, LedgerForm, OpenBatch};
use curt_core::{Key, PortResult, UnixMillis};
use tokio_postgres::Row;

use super::by_index::BY_INDEX;
use super::decode::parse_key;
use super::engine::{Engine, Step, Value, column};
use super::schema::{KEYS, Tables};

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

    /// Runs `add`, which adds unused rows, with what the form needs around it: a lock before, and `undo` afterwards for
    /// what should not have been added. Answers with what was added, and its count less what was undone.
    async fn add(
        &self,
        op: &'static str,
        before: Option<Step<'_>>,
        add: Step<'_>,
        undo: Option<Step<'_>>,
    ) -> PortResult<(Option<Row>, u64)> {
        let lock = (self.form == LedgerForm::Cursor).then_some(Step {
            sql: sql::LOCK_TAIL,
            values: &[],
        });
        let steps: Vec<_> = [lock, before].into_iter().flatten().collect();
        let place = steps.len();
        let steps = [steps, vec![add], Vec::from_iter(undo)].concat();
        let engine = self.tables.engine().await?;
        let mut answers = engine.transact(op, &steps).await?;
        let mut undone = answers.split_off(place + 1);
        let added = answers.pop().and_then(|mut rows| rows.pop());
        let undone = undone.pop().and_then(|mut rows| rows.pop());
        let number = |row: &Option<Row>| -> PortResult<i64> {
            row.as_ref().map_or(Ok(0), |row| column(op, row, 0))
        };
        let left = number(&added)? - number(&undone)?;
        Ok((added, u64::try_from(left).unwrap_or(0)))
    }

    /// Adds minted keys, unless an owner with a higher fencing token has been here.
    async fn mint(&self, fencing_token: Option<u64>, keys: &[Key]) -> PortResult<Option<u64>> {
        const OP: &str = "add minted keys";
        let (texts, fencing_token) = (texts(keys), fencing_token.map(u64::cast_signed));
        let (add, undo) = match self.form {
            LedgerForm::Delete => (sql::INSERT, Some(sql::UNINSERT)),
            LedgerForm::UsedTable => (sql::INSERT_UNLESS_MOVED, Some(sql::UNINSERT_MOVED)),
            // Every key that was ever known still has its row.
            LedgerForm::Status | LedgerForm::Cursor => (sql::INSERT, None),
        };
        let raise: &[Value<'_>] = &[&fencing_token];
        let raise = fencing_token.is_some().then_some(Step {
            sql: sql::RAISE_FENCING_TOKEN,
            values: raise,
        });
        let add = Step {
            sql: add,
            values: &[&texts, &fencing_token],
        };
        let listed: &[Value<'_>] = &[&texts];
        let undo = undo.map(|sql| Step {
            sql,
            values: listed,
        });
        let (row, added) = self.add(OP, raise, add, undo).await?;
        let allowed = row.map_or(Ok(false), |row| column(OP, &row, 1))?;
        Ok(allowed.then_some(added))
    }
}

#[async_trait]
impl KeyLedger for PostgresLedger {
    async fn insert(&self, keys: &[Key]) -> PortResult<u64> {
        let added = self.mint(None, keys).await?;
        Ok(added.unwrap_or_default())
    }

    async fn insert_fenced(&self, fencing_token: u64, keys: &[Key]) -> PortResult<Option<u64>> {
        self.mint(Some(fencing_token), keys).await
    }

    async fn take(&self, batch: &BatchId, limit: usize, now: UnixMillis) -> PortResult<Vec<Key>> {
        const OP: &str = "take keys";
        let (name, limit) = (&*batch.0, i64::try_from(limit).unwrap_or(i64::MAX));
        let (lock, take) = match self.form {
            LedgerForm::Delete => (sql::LOCK_NAME, sql::TAKE_DELETING),
            LedgerForm::Status => (sql::LOCK_NAME, sql::TAKE_MARKING),
            LedgerForm::UsedTable => (sql::LOCK_NAME, sql::TAKE_MOVING),
            LedgerForm::Cursor => (sql::LOCK_HEAD, sql::TAKE_RANGE),
        };
        let lock = Step {
            sql: lock,
            values: &[&name],
        };
        let take = Step {
            sql: take,
            values: &[&name, &limit, &now.0],
        };
        let engine = self.tables.engine().await?;
        let steps = [BY_INDEX, lock, take];
        let mut answers = engine.transact(OP, &steps).await?;
        let rows = answers.pop().unwrap_or_default();
        rows.first().map_or(Ok(Vec::new()), |row| keys(OP, row, 0))
    }

    async fn close(&self, batches: &[BatchId]) -> PortResult<()> {
        let names: Vec<&str> = batches.iter().map(|batch| &*batch.0).collect();
        let engine = self.tables.engine().await?;
        engine
            .write("close batches of keys", sql::CLOSE, &[&names])
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
        let (_, freed) = self.add(OP, None, give_back, None).await?;
        Ok(freed)
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
            LedgerForm::Cursor => None,
        };
        let (_, freed) = self.add(OP, None, step(sql::RECYCLE), undo).await?;
        Ok(freed)
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

    async fn health(&self) -> PortResult<Vec<Finding>> {
        const OP: &str = "count dead rows";
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, sql::DEAD_ROWS, &[]).await?;
        let dead: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
        Ok(vec![Finding {
            name: "dead rows",
            count: u64::try_from(dead).unwrap_or(0),
            advice: "every take steps over them: look for a transaction that stays open, or for an autovacuum that \
                     is off or comes too rarely",
        }])
    }
}

fn texts(keys: &[Key]) -> Vec<&str> {
    keys.iter().map(Key::as_str).collect()
}

fn keys(op: &'static str, row: &Row, index: usize) -> PortResult<Vec<Key>> {
    let texts: Vec<&str> = column(op, row, index)?;
    texts.into_iter().map(|text| parse_key(op, text)).collect()
}
