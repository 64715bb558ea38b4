//! Catalogues of runs: a partition for each day, with an item for each run, which names its chunks, and one that counts
//! how often runs were replaced.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use curt_adapter_kit::wide_column::clicks::{CataloguedRun, RunRow, RunRows};
use curt_adapter_kit::wide_column::{Decided, ReadMode, pause};
use curt_core::PortResult;

use super::{DynamoDbClicks, gone};
use crate::bulk::Range;
use crate::engine::TRANSACTION_MAX;
use crate::failure::corrupt;
use crate::item::{Item, Key, Table, bytes, flag, number};
use crate::write::{Change, Condition, Write};

/// Room for what else a transaction writes.
const REPLACED_MAX: usize = TRANSACTION_MAX - 10;

fn partition(day: i32) -> String {
    format!("click-runs/{day}")
}

fn run_key(day: i32, run: i64) -> Key {
    Key::sorted(Table::Items, partition(day), &run.to_be_bytes())
}

fn chunks_value<'a>(chunks: impl Iterator<Item = (&'a Vec<u8>, &'a i64)>) -> AttributeValue {
    let pairs = chunks.flat_map(|(key, content)| [bytes(key), number(*content)]);
    AttributeValue::L(pairs.collect())
}

fn chunks_of(op: &'static str, item: &Item) -> PortResult<BTreeMap<Vec<u8>, i64>> {
    let chunk = |pair: &[AttributeValue]| match pair {
        [AttributeValue::B(key), AttributeValue::N(content)] => {
            Some((key.as_ref().to_vec(), content.parse().ok()?))
        }
        _ => None,
    };
    let chunks: Option<_> = item.list("chunks").chunks(2).map(chunk).collect();
    chunks.ok_or_else(|| corrupt(op, "chunks of a run"))
}

fn run_attributes(run: &CataloguedRun) -> Vec<Change> {
    vec![
        ("bytes", Some(number(run.bytes))),
        ("subjects", Some(number(run.subjects))),
        ("edits", Some(number(run.edits))),
        ("chunks", Some(chunks_value(run.chunks.iter()))),
        ("gone", Some(flag(false))),
    ]
}

/// Only if the run is there and was edited so often.
fn while_there(write: Write, edits: i64) -> Write {
    write
        .when_equal("gone", flag(false))
        .when_equal("edits", number(edits))
}

impl DynamoDbClicks {
    async fn count_replaced(&self, op: &'static str, day: i32) -> PortResult<i64> {
        let item = self.engine.get(op, &Key::item(partition(day))).await?;
        let count = item.map(|item| item.number("replaced")).transpose()?;
        Ok(count.unwrap_or(0))
    }
}

#[async_trait]
impl RunRows for DynamoDbClicks {
    fn replaced_max(&self) -> usize {
        REPLACED_MAX
    }

    /// Items are not read at one moment: again until none was replaced meanwhile.
    async fn get_runs(
        &self,
        op: &'static str,
        day: i32,
        _mode: ReadMode,
    ) -> PortResult<BTreeMap<i64, CataloguedRun>> {
        let mut replaced = self.count_replaced(op, day).await?;
        loop {
            let items = self.engine.query(op, Range::all(partition(day))).await?;
            let now = self.count_replaced(op, day).await?;
            if now != replaced {
                replaced = now;
                pause().await;
                continue;
            }
            let mut runs = BTreeMap::new();
            for item in &items {
                let sort = item.sort()?;
                if sort.is_empty() || item.flag("gone") {
                    continue;
                }
                let id = sort.try_into().map(i64::from_be_bytes);
                let run = CataloguedRun {
                    bytes: item.number("bytes")?,
                    subjects: item.number("subjects")?,
                    edits: item.number("edits")?,
                    chunks: chunks_of(op, item)?,
                };
                runs.insert(id.map_err(|error| corrupt(op, error))?, run);
            }
            return Ok(runs);
        }
    }

    async fn insert_run(
        &self,
        op: &'static str,
        run: &RunRow,
        replaced: &[(i64, i64)],
    ) -> PortResult<Decided> {
        let new = CataloguedRun {
            bytes: run.bytes,
            subjects: run.subjects,
            edits: 0,
            chunks: run.chunks.iter().cloned().collect(),
        };
        let write = Write::put(run_key(run.day, run.id), run_attributes(&new));
        let write = write.when(Condition::Absent);
        if replaced.is_empty() {
            return self.engine.decide(op, &write).await;
        }
        let count = Write::update(Key::item(partition(run.day)), Vec::new()).add("replaced", 1);
        let mut writes = vec![count, write];
        writes.extend(replaced.iter().map(|(id, edits)| {
            let remove = Write::put(run_key(run.day, *id), gone());
            while_there(remove, *edits)
        }));
        self.engine.decide_all(op, &writes).await
    }

    async fn edit_run(
        &self,
        op: &'static str,
        day: i32,
        id: i64,
        before: &CataloguedRun,
        after: &CataloguedRun,
    ) -> PortResult<Decided> {
        let write = Write::put(run_key(day, id), run_attributes(after));
        self.engine
            .decide(op, &while_there(write, before.edits))
            .await
    }

    async fn remove_run(
        &self,
        op: &'static str,
        day: i32,
        id: i64,
        edits: i64,
    ) -> PortResult<Decided> {
        let write = Write::put(run_key(day, id), gone());
        self.engine.decide(op, &while_there(write, edits)).await
    }
}
