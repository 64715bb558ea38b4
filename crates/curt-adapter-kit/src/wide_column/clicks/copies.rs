//! What copies of clicks need beside the ports.

use async_trait::async_trait;
use curt_core::ports::{Salt, StreamPartition};
use curt_core::{Day, PortResult};

use super::WideClicks;
use super::run_catalogue::{day_at, days_between};
use crate::wide_column::ReadMode;
use crate::{ClickCopies, EncodedWindow, StoredRun};

const OP: &str = "export clicks";

#[async_trait]
impl ClickCopies for WideClicks {
    async fn next_run(&self, after: Option<(Day, i64)>) -> PortResult<Option<StoredRun>> {
        if after.is_none() {
            // Windows that count and were left before they were in the catalogues.
            self.all_offsets().await?;
        }
        self.deadlines.list(OP, self.find_next_run(after)).await
    }

    async fn all_offsets(&self) -> PortResult<Vec<(StreamPartition, u64)>> {
        let mut offsets = Vec::new();
        let mut after: Option<Box<str>> = None;
        loop {
            let scan = self.rows.scan_offsets(OP, after.as_deref());
            let part = self.deadlines.list(OP, scan).await?;
            for partition in part.rows {
                let finished = self.finished_offset(OP, partition);
                let next = self.deadlines.change_much(OP, finished).await?;
                offsets.push((partition, next));
            }
            after = part.next;
            if after.is_none() {
                return Ok(offsets);
            }
        }
    }

    async fn all_salts(&self) -> PortResult<Vec<(Day, Salt)>> {
        self.deadlines.list(OP, self.find_salts(OP)).await
    }

    async fn apply_encoded(&self, window: EncodedWindow) -> PortResult<bool> {
        self.apply_encoded_window(&window).await
    }
}

impl WideClicks {
    async fn find_next_run(&self, after: Option<(Day, i64)>) -> PortResult<Option<StoredRun>> {
        let first = after.map_or(Day::FIRST, |(day, _)| day);
        let mut span = days_between(first, Day::LAST);
        loop {
            let entries = self.lists.read(OP, &span, 1).await?;
            let Some(entry) = entries.entries.first() else {
                return Ok(None);
            };
            span.follow(&entry.place);
            let Some(number) = day_at(&entry.place.position) else {
                continue;
            };
            let day = Day::numbered(number.cast_unsigned());
            let last = after.filter(|(last, _)| *last == day);
            let is_behind = |id: i64| last.is_none_or(|(_, last)| id > last);
            let runs = self.rows.get_runs(OP, number, ReadMode::Acknowledged);
            let next = runs.await?.into_iter().find(|(id, _)| is_behind(*id));
            if let Some((id, run)) = next {
                let subjects = u32::try_from(run.subjects);
                return Ok(Some(StoredRun {
                    id,
                    day,
                    subjects: subjects.map_err(|error| self.corrupt(OP, error))?,
                }));
            }
        }
    }
}
