//! Runs of counts: a catalogue per day.

use crate::rollup_runs::{ChunkEdit, FoundChunk, NewRun, RollupRuns, RunEntry};
use async_trait::async_trait;
use curt_core::{Day, PortResult};

use super::WideClicks;
use super::manifest::RunRow;
use super::rows::{Content, DamagedKind, new_id};
use super::run_catalogue::{day_at, days_between, places_of};
use crate::wide_column::{Decided, ReadMode, together};

#[async_trait]
impl RollupRuns for WideClicks {
    fn backend(&self) -> &'static str {
        self.deadlines.backend
    }

    async fn find(
        &self,
        key: &[u8],
        first: Day,
        last: Day,
        limit: usize,
    ) -> PortResult<Vec<FoundChunk>> {
        const OP: &str = "find counts";
        self.deadlines
            .list(OP, self.find_chunks(OP, key, first, last, limit))
            .await
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<RunEntry>> {
        const OP: &str = "list small runs of counts";
        self.deadlines
            .list(OP, self.small_runs(OP, limit.min(self.rows.replaced_max())))
            .await
    }

    async fn read(&self, id: i64) -> PortResult<Vec<Vec<u8>>> {
        const OP: &str = "read a run of counts";
        let read = async {
            let Some(day) = self.rows.get_day(OP, id).await? else {
                return Ok(Vec::new());
            };
            let Some(run) = self
                .rows
                .get_runs(OP, day, ReadMode::Acknowledged)
                .await?
                .remove(&id)
            else {
                return Ok(Vec::new());
            };
            let chunks = run.chunks.into_values();
            let chunks = together(chunks.map(|chunk| self.rows.get_content(OP, chunk))).await?;
            let chunks: Option<Vec<Vec<u8>>> = chunks.into_iter().collect();
            chunks.ok_or_else(|| self.corrupt(OP, format!("run {id} lacks a chunk")))
        };
        self.deadlines.list(OP, read).await
    }

    async fn replace(&self, old: &[RunEntry], new: NewRun) -> PortResult<bool> {
        const OP: &str = "merge runs of counts";
        self.deadlines
            .change_much(OP, self.replace_runs(OP, old, new))
            .await
    }

    async fn edit_chunk(&self, edit: ChunkEdit) -> PortResult<bool> {
        const OP: &str = "edit a run of counts";
        self.deadlines
            .change_much(OP, self.try_edit_chunk(OP, edit))
            .await
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.note_damage(DamagedKind::Run, id).await
    }
}

impl WideClicks {
    /// Enters a run with its chunks. Called twice, or after it was merged: no change.
    pub(super) async fn enter_run(&self, op: &'static str, run: &RunRow) -> PortResult<()> {
        self.lists.add(op, places_of(run)).await?;
        let entered = self.rows.insert_run(op, run, &[]).await?;
        entered.into_result().map(drop)
    }

    async fn replace_runs(
        &self,
        op: &'static str,
        old: &[RunEntry],
        new: NewRun,
    ) -> PortResult<bool> {
        let _turn = self.turn.lock().await;
        let row = RunRow::new(&new);
        let before = self.rows.get_runs(op, row.day, ReadMode::Decided).await?;
        let is_there = |run: &RunEntry| {
            before
                .get(&run.id)
                .is_some_and(|now| now.edits == run.edits)
        };
        if !old.iter().all(is_there) {
            return Ok(false);
        }
        self.rows.put_contents(op, row.contents(&new)).await?;
        self.lists.add(op, places_of(&row)).await?;
        let replaced: Vec<(i64, i64)> = old.iter().map(|run| (run.id, run.edits)).collect();
        let is_done = match self.rows.insert_run(op, &row, &replaced).await? {
            Decided::Applied => true,
            Decided::Refused => false,
            Decided::Unknown(_) => {
                let now = self.rows.get_runs(op, row.day, ReadMode::Decided).await?;
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
        let Some(day) = self.rows.get_day(op, edit.run).await? else {
            return Ok(false);
        };
        let before = self.rows.get_runs(op, day, ReadMode::Decided).await?;
        let run = before.get(&edit.run).filter(|run| run.edits == edit.edits);
        let Some((run, chunk)) = run.and_then(|run| Some((run, *run.chunks.get(&edit.first_key)?)))
        else {
            return Ok(false);
        };
        let mut after = run.clone();
        after.edits += 1;
        after.bytes = (run.bytes + edit.bytes_added()).max(0);
        after.subjects = (run.subjects - 1).max(0);
        after.chunks.remove(&edit.first_key);
        if let Some(rest) = &edit.rest {
            let id = new_id();
            let content = Content {
                id,
                content: Some(&rest.content),
                ..Content::default()
            };
            self.rows.put_contents(op, vec![content]).await?;
            after.chunks.insert(rest.first_key.clone(), id);
        }
        match self.rows.edit_run(op, day, edit.run, run, &after).await? {
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
                if self
                    .rows
                    .get_runs(OP, day, ReadMode::Acknowledged)
                    .await?
                    .is_empty()
                {
                    self.lists.drop_stale(OP, entries.entries).await;
                }
            }
            Ok(gone)
        };
        self.deadlines.change_much(OP, purge).await
    }

    /// Removes runs of the day until so many subjects are gone, and says how many were.
    async fn purge_day(&self, op: &'static str, day: i32, limit: u64) -> PortResult<u64> {
        let _turn = self.turn.lock().await;
        let mut gone = 0;
        for (id, run) in self.rows.get_runs(op, day, ReadMode::Decided).await? {
            if gone >= limit {
                break;
            }
            let removed = self.rows.remove_run(op, day, id, run.edits).await?;
            if !removed.into_result()? {
                continue;
            }
            gone += run.subjects.cast_unsigned();
            let chunks = run.chunks.into_values();
            self.delete_contents(op, chunks.collect()).await;
        }
        Ok(gone)
    }
}
