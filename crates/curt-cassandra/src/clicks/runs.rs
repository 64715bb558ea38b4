//! Catalogues of runs: a row for each run, with an empty key, and one for each of its chunks.

use std::collections::BTreeMap;

use async_trait::async_trait;
use curt_adapter_kit::wide_column::clicks::{CataloguedRun, RunRow, RunRows};
use curt_adapter_kit::wide_column::{Decided, ReadMode};
use curt_core::PortResult;
use scylla::DeserializeRow;
use scylla::value::CqlValue;

use super::CassandraClicks;
use crate::statement::Cql;

const GET: Cql = Cql::read(
    "SELECT run, first_key, bytes, subjects, edits, content_id, gone FROM KEYSPACE.click_runs \
     WHERE namespace = ? AND day = ?",
);
const ENTER_RUN: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_runs (namespace, day, run, first_key, bytes, subjects, edits, gone) \
     VALUES (?, ?, ?, 0x, ?, ?, 0, false) IF NOT EXISTS",
);
const ENTER_CHUNK: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_runs (namespace, day, run, first_key, content_id, gone) VALUES (?, ?, ?, ?, ?, false)",
);
const REMOVE_RUN: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_runs SET gone = true WHERE namespace = ? AND day = ? AND run = ? AND first_key = 0x \
     IF gone = false AND edits = ?",
);
const EDIT_RUN: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_runs SET edits = ?, bytes = ?, subjects = ? \
     WHERE namespace = ? AND day = ? AND run = ? AND first_key = 0x IF gone = false AND edits = ?",
);
const REMOVE_CHUNK: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_runs SET gone = true WHERE namespace = ? AND day = ? AND run = ? AND first_key = ?",
);

#[derive(Clone, Debug, DeserializeRow)]
struct CatalogueRow {
    run: i64,
    first_key: Vec<u8>,
    bytes: Option<i64>,
    subjects: Option<i64>,
    edits: Option<i64>,
    content_id: Option<i64>,
    gone: Option<bool>,
}

#[async_trait]
impl RunRows for CassandraClicks {
    async fn get_runs(
        &self,
        op: &'static str,
        day: i32,
        mode: ReadMode,
    ) -> PortResult<BTreeMap<i64, CataloguedRun>> {
        let values = (&*self.namespace, day);
        let rows: Vec<CatalogueRow> = self.engine.rows(op, GET.at(mode), values).await?;
        let mut runs: BTreeMap<i64, CataloguedRun> = BTreeMap::new();
        // The row of the run itself comes before those of its chunks.
        for row in rows.into_iter().filter(|row| row.gone == Some(false)) {
            match row.content_id {
                None => {
                    let run = CataloguedRun {
                        bytes: row.bytes.unwrap_or(0),
                        subjects: row.subjects.unwrap_or(0),
                        edits: row.edits.unwrap_or(0),
                        chunks: BTreeMap::new(),
                    };
                    runs.insert(row.run, run);
                }
                Some(content) => {
                    if let Some(run) = runs.get_mut(&row.run) {
                        run.chunks.insert(row.first_key, content);
                    }
                }
            }
        }
        Ok(runs)
    }

    async fn insert_run(
        &self,
        op: &'static str,
        run: &RunRow,
        replaced: &[(i64, i64)],
    ) -> PortResult<Decided> {
        let mut own = self.run_key(run.day, run.id);
        own.push(Some(CqlValue::BigInt(run.bytes)));
        own.push(Some(CqlValue::BigInt(run.subjects)));
        let mut statements = vec![(ENTER_RUN, own)];
        let chunks = run.chunks.iter();
        statements.extend(chunks.map(|(key, id)| self.enter_chunk(run.day, run.id, key, *id)));
        statements.extend(replaced.iter().map(|(id, edits)| {
            let mut values = self.run_key(run.day, *id);
            values.push(Some(CqlValue::BigInt(*edits)));
            (REMOVE_RUN, values)
        }));
        self.engine.decide_all(op, statements).await
    }

    async fn edit_run(
        &self,
        op: &'static str,
        day: i32,
        id: i64,
        before: &CataloguedRun,
        after: &CataloguedRun,
    ) -> PortResult<Decided> {
        let mut own = vec![
            Some(CqlValue::BigInt(after.edits)),
            Some(CqlValue::BigInt(after.bytes)),
            Some(CqlValue::BigInt(after.subjects)),
        ];
        own.extend(self.run_key(day, id));
        own.push(Some(CqlValue::BigInt(before.edits)));
        let mut statements = vec![(EDIT_RUN, own)];
        let removed = before.chunks.keys();
        let removed = removed.filter(|key| !after.chunks.contains_key(*key));
        statements.extend(removed.map(|key| {
            let mut values = self.run_key(day, id);
            values.push(Some(CqlValue::Blob(key.clone())));
            (REMOVE_CHUNK, values)
        }));
        let entered = after.chunks.iter();
        let entered = entered.filter(|(key, chunk)| before.chunks.get(*key) != Some(*chunk));
        statements.extend(entered.map(|(key, chunk)| self.enter_chunk(day, id, key, *chunk)));
        self.engine.decide_all(op, statements).await
    }

    async fn remove_run(
        &self,
        op: &'static str,
        day: i32,
        id: i64,
        edits: i64,
    ) -> PortResult<Decided> {
        let values = (&*self.namespace, day, id, edits);
        self.engine.decide(op, REMOVE_RUN, values).await
    }
}

impl CassandraClicks {
    fn enter_chunk(
        &self,
        day: i32,
        run: i64,
        key: &[u8],
        content: i64,
    ) -> (Cql, Vec<Option<CqlValue>>) {
        let mut values = self.run_key(day, run);
        values.push(Some(CqlValue::Blob(key.to_vec())));
        values.push(Some(CqlValue::BigInt(content)));
        (ENTER_CHUNK, values)
    }

    fn run_key(&self, day: i32, run: i64) -> Vec<Option<CqlValue>> {
        vec![
            Some(CqlValue::Text((&*self.namespace).into())),
            Some(CqlValue::Int(day)),
            Some(CqlValue::BigInt(run)),
        ]
    }
}
