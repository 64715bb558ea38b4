//! Runs of counts.

use async_trait::async_trait;
use curt_adapter_kit::rollup_runs::{
    ChunkEdit, FoundChunk, NewChunk, NewRun, RollupRuns, RunEntry,
};
use curt_core::{Day, PortResult};
use deadpool_postgres::Transaction;
use tokio_postgres::{Error, Row};

use super::PostgresClicks;
use super::apply::query;
use super::damage::{self, Damaged};
use crate::decode::{corrupt, rows_max};
use crate::engine::{Engine, Value, column};
use crate::failure::BACKEND;

const FIND: &str = include_str!("sql/find_chunks.sql");
const ADD: &str = include_str!("sql/add_run.sql");
const REPLACE: &str = include_str!("sql/replace_runs.sql");
const EDIT: &str = include_str!("sql/edit_chunk.sql");
const PURGE: &str = include_str!("sql/purge_runs.sql");
const SMALL: &str = "SELECT id, day, bytes, edits FROM rollup_runs WHERE bytes < 8388608 \
     AND NOT EXISTS (SELECT 1 FROM click_damage AS d WHERE d.kind = 0 AND d.id = rollup_runs.id) \
     ORDER BY id DESC LIMIT $1";
const READ: &str = "SELECT content FROM rollup_chunks WHERE run = $1 ORDER BY first_key";

#[async_trait]
impl RollupRuns for PostgresClicks {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn find(
        &self,
        key: &[u8],
        first: Day,
        last: Day,
        limit: usize,
    ) -> PortResult<Vec<FoundChunk>> {
        const OP: &str = "find counts";
        let (first, last) = (stored_day(first), stored_day(last));
        let values: [Value<'_>; 4] = [&key, &first, &last, &rows_max(limit)];
        let rows = self.tables.engine().await?.read(OP, FIND, &values).await?;
        let chunk = |row: &Row| {
            Ok(FoundChunk {
                day: day_of(OP, row, 0)?,
                content: column(OP, row, 1)?,
                run: column(OP, row, 2)?,
                edits: column(OP, row, 3)?,
            })
        };
        rows.iter().map(chunk).collect()
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<RunEntry>> {
        const OP: &str = "list small runs of counts";
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, SMALL, &[&rows_max(limit)]).await?;
        let entry = |row: &Row| {
            let bytes: i64 = column(OP, row, 2)?;
            Ok(RunEntry {
                id: column(OP, row, 0)?,
                day: day_of(OP, row, 1)?,
                bytes: bytes.cast_unsigned(),
                edits: column(OP, row, 3)?,
            })
        };
        rows.iter().map(entry).collect()
    }

    async fn read(&self, id: i64) -> PortResult<Vec<Vec<u8>>> {
        const OP: &str = "read a run of counts";
        let rows = self.tables.engine().await?.read(OP, READ, &[&id]).await?;
        rows.iter().map(|row| column(OP, row, 0)).collect()
    }

    async fn replace(&self, old: &[RunEntry], new: NewRun) -> PortResult<bool> {
        const OP: &str = "merge runs of counts";
        let (ids, edits): (Vec<i64>, Vec<i64>) = old.iter().map(|run| (run.id, run.edits)).unzip();
        let columns = RunColumns::of(&new);
        let [day, subjects, bytes, keys, contents] = columns.values();
        let values = [
            &ids as Value<'_>,
            &edits,
            day,
            subjects,
            bytes,
            keys,
            contents,
        ];
        let engine = self.tables.engine().await?;
        let rows = engine.write(OP, REPLACE, &values).await?;
        rows.first().map_or(Ok(false), |row| column(OP, row, 0))
    }

    async fn edit_chunk(&self, edit: ChunkEdit) -> PortResult<bool> {
        const OP: &str = "edit a run of counts";
        let rest = edit.rest.as_ref();
        let values: [Value<'_>; 6] = [
            &edit.run,
            &edit.edits,
            &edit.bytes_added(),
            &edit.first_key,
            &rest.map(|chunk| &*chunk.first_key),
            &rest.map(|chunk| &*chunk.content),
        ];
        let rows = self.tables.engine().await?.write(OP, EDIT, &values).await?;
        Ok(!rows.is_empty())
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        damage::set_aside(self.tables.engine().await?, Damaged::Run, id).await
    }
}

pub(super) async fn add(transaction: &Transaction<'_>, run: &NewRun) -> Result<(), Error> {
    let columns = RunColumns::of(run);
    query(transaction, ADD, &columns.values()).await.map(drop)
}

pub(super) async fn purge(engine: &Engine, before: Day, limit: usize) -> PortResult<u64> {
    const OP: &str = "purge click rollups";
    let values: [Value<'_>; 2] = [&stored_day(before), &rows_max(limit)];
    let rows = engine.write(OP, PURGE, &values).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    Ok(count.cast_unsigned())
}

/// A run by column.
struct RunColumns<'a> {
    day: i32,
    subjects: i64,
    bytes: i64,
    first_keys: Vec<&'a [u8]>,
    contents: Vec<&'a [u8]>,
}

impl<'a> RunColumns<'a> {
    fn of(run: &'a NewRun) -> Self {
        let chunks = run.chunks.iter();
        let columns = |chunk: &'a NewChunk| (&*chunk.first_key, &*chunk.content);
        let (first_keys, contents) = chunks.map(columns).unzip();
        Self {
            day: stored_day(run.day),
            subjects: run.subjects.into(),
            bytes: run.bytes().cast_signed(),
            first_keys,
            contents,
        }
    }

    fn values(&self) -> [Value<'_>; 5] {
        [
            &self.day,
            &self.subjects,
            &self.bytes,
            &self.first_keys,
            &self.contents,
        ]
    }
}

/// A day as its number.
pub(super) fn stored_day(day: Day) -> i32 {
    day.number().cast_signed()
}

fn day_of(op: &'static str, row: &Row, index: usize) -> PortResult<Day> {
    let number: i32 = column(op, row, index)?;
    let number = u32::try_from(number).map_err(|_| corrupt(op, number))?;
    Ok(Day::numbered(number))
}
