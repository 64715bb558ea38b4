//! Runs of counts: a catalogue per day.

use async_trait::async_trait;
use curt_adapter_kit::rollup_runs::{ChunkEdit, FoundChunk, NewRun, RollupRuns, RunEntry};
use curt_core::{Day, PortResult};
use scylla::value::CqlValue;

use super::contents::{Content, new_id};
use super::manifest::RunRow;
use super::run_catalogue::{GET, day_at, days_between, places_of};
use super::{CassandraClicks, Damaged};
use crate::failure::{BACKEND, corrupt};
use crate::statement::{Cql, Decided};
use crate::together::together;

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

#[async_trait]
impl RollupRuns for CassandraClicks {
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
        self.engine
            .list(OP, self.find_chunks(OP, key, first, last, limit))
            .await
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<RunEntry>> {
        const OP: &str = "list small runs of counts";
        self.engine.list(OP, self.small_runs(OP, limit)).await
    }

    async fn read(&self, id: i64) -> PortResult<Vec<Vec<u8>>> {
        const OP: &str = "read a run of counts";
        let read = async {
            let Some(day) = self.get_day(OP, id).await? else {
                return Ok(Vec::new());
            };
            let Some(run) = self.catalogue(OP, GET, day).await?.remove(&id) else {
                return Ok(Vec::new());
            };
            let chunks = run.chunks.into_values();
            let chunks = together(chunks.map(|chunk| self.get_content(OP, chunk))).await?;
            let chunks: Option<Vec<Vec<u8>>> = chunks.into_iter().collect();
            chunks.ok_or_else(|| corrupt(OP, format!("run {id} lacks a chunk")))
        };
        self.engine.list(OP, read).await
    }

    async fn replace(&self, old: &[RunEntry], new: NewRun) -> PortResult<bool> {
        const OP: &str = "merge runs of counts";
        self.engine
            .change_much(OP, self.replace_runs(OP, old, new))
            .await
    }

    async fn edit_chunk(&self, edit: ChunkEdit) -> PortResult<bool> {
        const OP: &str = "edit a run of counts";
        self.engine
            .change_much(OP, self.try_edit_chunk(OP, edit))
            .await
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.note_damage(Damaged::Run, id).await
    }
}

impl CassandraClicks {
    /// Enters a run with its chunks. Called twice, or after it was merged: no change.
    pub(super) async fn enter_run(&self, op: &'static str, run: &RunRow) -> PortResult<()> {
        self.lists.add(op, places_of(run)).await?;
        let statements = self.statements_to_enter(run, ENTER_RUN);
        match self.engine.decide_all(op, statements).await? {
            Decided::Applied | Decided::Refused => Ok(()),
            Decided::Unknown(error) => Err(error),
        }
    }

    fn statements_to_enter(&self, run: &RunRow, cql: Cql) -> Vec<(Cql, Vec<Option<CqlValue>>)> {
        let mut own = self.run_key(run.day, run.id);
        own.push(Some(CqlValue::BigInt(run.bytes)));
        own.push(Some(CqlValue::BigInt(run.subjects)));
        let chunk = |(key, content): &(Vec<u8>, i64)| {
            let mut values = self.run_key(run.day, run.id);
            values.push(Some(CqlValue::Blob(key.clone())));
            values.push(Some(CqlValue::BigInt(*content)));
            (ENTER_CHUNK, values)
        };
        let chunks = run.chunks.iter().map(chunk);
        std::iter::once((cql, own)).chain(chunks).collect()
    }

    fn run_key(&self, day: i32, run: i64) -> Vec<Option<CqlValue>> {
        vec![
            Some(CqlValue::Text((&*self.namespace).into())),
            Some(CqlValue::Int(day)),
            Some(CqlValue::BigInt(run)),
        ]
    }

    async fn replace_runs(
        &self,
        op: &'static str,
        old: &[RunEntry],
        new: NewRun,
    ) -> PortResult<bool> {
        let _turn = self.turn.lock().await;
        let row = RunRow::new(&new);
        let before = self.catalogue(op, GET.serial(), row.day).await?;
        let is_there = |run: &RunEntry| {
            before
                .get(&run.id)
                .is_some_and(|now| now.edits == run.edits)
        };
        if !old.iter().all(is_there) {
            return Ok(false);
        }
        self.put_contents(op, row.contents(&new)).await?;
        self.lists.add(op, places_of(&row)).await?;
        let mut statements = self.statements_to_enter(&row, ENTER_RUN);
        statements.extend(old.iter().map(|run| {
            let mut values = self.run_key(row.day, run.id);
            values.push(Some(CqlValue::BigInt(run.edits)));
            (REMOVE_RUN, values)
        }));
        let is_done = match self.engine.decide_all(op, statements).await? {
            Decided::Applied => true,
            Decided::Refused => false,
            Decided::Unknown(_) => {
                let now = self.catalogue(op, GET.serial(), row.day).await?;
                now.contains_key(&row.id)
            }
        };
        let over = match is_done {
            true => old.iter().filter_map(|run| before.get(&run.id)).collect(),
            false => Vec::new(),
        };
        let chunks = over.iter().flat_map(|run| run.chunks.values().copied());
        let mut ids: Vec<i64> = chunks.collect();
        if !is_done {
            ids.extend(row.chunks.iter().map(|(_, id)| *id));
        }
        self.delete_contents(op, ids).await;
        Ok(is_done)
    }

    async fn try_edit_chunk(&self, op: &'static str, edit: ChunkEdit) -> PortResult<bool> {
        let _turn = self.turn.lock().await;
        let Some(day) = self.get_day(op, edit.run).await? else {
            return Ok(false);
        };
        let before = self.catalogue(op, GET.serial(), day).await?;
        let run = before.get(&edit.run).filter(|run| run.edits == edit.edits);
        let Some((run, chunk)) = run.and_then(|run| Some((run, *run.chunks.get(&edit.first_key)?)))
        else {
            return Ok(false);
        };
        let mut own = vec![
            Some(CqlValue::BigInt(run.edits + 1)),
            Some(CqlValue::BigInt((run.bytes + edit.bytes_added()).max(0))),
            Some(CqlValue::BigInt((run.subjects - 1).max(0))),
        ];
        own.extend(self.run_key(day, edit.run));
        own.push(Some(CqlValue::BigInt(edit.edits)));
        let mut statements = vec![(EDIT_RUN, own)];
        let rest_key = edit.rest.as_ref().map(|rest| &rest.first_key);
        if rest_key != Some(&edit.first_key) {
            let mut values = self.run_key(day, edit.run);
            values.push(Some(CqlValue::Blob(edit.first_key.clone())));
            statements.push((REMOVE_CHUNK, values));
        }
        if let Some(rest) = &edit.rest {
            let id = new_id();
            let content = Content {
                id,
                content: Some(&rest.content),
                ..Content::default()
            };
            self.put_contents(op, vec![content]).await?;
            let mut values = self.run_key(day, edit.run);
            values.push(Some(CqlValue::Blob(rest.first_key.clone())));
            values.push(Some(CqlValue::BigInt(id)));
            statements.push((ENTER_CHUNK, values));
        }
        match self.engine.decide_all(op, statements).await? {
            Decided::Applied => {
                self.delete_contents(op, vec![chunk]).await;
                Ok(true)
            }
            Decided::Refused => Ok(false),
            Decided::Unknown(error) => Err(error),
        }
    }

    pub(super) async fn purge_runs(&self, before: Day, limit: usize) -> PortResult<u64> {
        const OP: &str = "purge click rollups";
        if before == Day::FIRST {
            return Ok(0);
        }
        let purge = async {
            let mut span = days_between(Day::FIRST, before.minus(1));
            let mut gone = 0_u64;
            while gone < limit as u64 {
                let entries = self.lists.read(OP, &span, 1).await?;
                let Some(entry) = entries.entries.first() else {
                    break;
                };
                span.follow(&entry.place);
                let Some(day) = day_at(&entry.place.position) else {
                    continue;
                };
                gone += self.purge_day(OP, day, limit as u64 - gone).await?;
                if self.catalogue(OP, GET, day).await?.is_empty() {
                    self.lists.drop_stale(OP, entries.entries).await;
                }
            }
            Ok(gone)
        };
        self.engine.change_much(OP, purge).await
    }

    /// Removes runs of the day until so many subjects are gone, and says how many were.
    async fn purge_day(&self, op: &'static str, day: i32, limit: u64) -> PortResult<u64> {
        let _turn = self.turn.lock().await;
        let mut gone = 0;
        for (id, run) in self.catalogue(op, GET.serial(), day).await? {
            if gone >= limit {
                break;
            }
            let values = (&*self.namespace, day, id, run.edits);
            match self.engine.decide(op, REMOVE_RUN, values).await? {
                Decided::Applied => gone += run.subjects.cast_unsigned(),
                Decided::Refused => continue,
                Decided::Unknown(error) => return Err(error),
            }
            let chunks = run.chunks.into_values();
            self.delete_contents(op, chunks.collect()).await;
        }
        Ok(gone)
    }
}
