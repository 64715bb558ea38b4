use async_trait::async_trait;
use curt_adapter_kit::{ClickCopies, Effect, EncodedWindow, StoredRun};
use curt_core::ports::{Salt, StreamId, StreamPartition};
use curt_core::{Day, PortResult};
use scylla::DeserializeRow;

use super::CassandraClicks;
use super::run_catalogue::{GET, day_at, days_between};
use super::window::FLUSH_TIMEOUT_FACTOR;
use crate::failure::corrupt;
use crate::statement::Cql;

const OP: &str = "export clicks";
const ROWS_AT_ONCE: i32 = 5_000;
const OFFSETS: Cql = Cql::read(
    "SELECT token(namespace, stream, partition) AS hash, namespace, stream, partition FROM KEYSPACE.click_offsets \
     WHERE token(namespace, stream, partition) > ? AND token(namespace, stream, partition) <= ? LIMIT ?",
);

#[derive(DeserializeRow)]
struct OffsetName {
    hash: i64,
    namespace: String,
    stream: i64,
    partition: i64,
}

#[async_trait]
impl ClickCopies for CassandraClicks {
    async fn next_run(&self, after: Option<(Day, i64)>) -> PortResult<Option<StoredRun>> {
        if after.is_none() {
            // Windows that count and were left before they were in the catalogues.
            self.all_offsets().await?;
        }
        self.engine.list(OP, self.find_next_run(after)).await
    }

    async fn all_offsets(&self) -> PortResult<Vec<(StreamPartition, u64)>> {
        let (mut offsets, mut hash) = (Vec::new(), i64::MIN);
        loop {
            let scan = self
                .engine
                .rows(OP, OFFSETS, (hash, i64::MAX, ROWS_AT_ONCE));
            let rows: Vec<OffsetName> = self.engine.list(OP, scan).await?;
            let is_last = rows.len() < ROWS_AT_ONCE.unsigned_abs() as usize;
            hash = rows.last().map_or(hash, |row| row.hash);
            for row in rows
                .into_iter()
                .filter(|row| row.namespace == *self.namespace)
            {
                let number = u32::try_from(row.partition);
                let partition = StreamPartition {
                    stream: StreamId(row.stream.cast_unsigned()),
                    number: number.map_err(|error| corrupt(OP, error))?,
                };
                let finished = self.finished_offset(OP, partition);
                let next = self.engine.change_much(OP, finished).await?;
                offsets.push((partition, next));
            }
            if is_last {
                return Ok(offsets);
            }
        }
    }

    async fn all_salts(&self) -> PortResult<Vec<(Day, Salt)>> {
        self.engine.list(OP, self.find_salts(OP)).await
    }

    async fn apply_encoded(&self, window: EncodedWindow) -> PortResult<bool> {
        const OP: &str = "add clicks";
        let limit = self.engine.settings.background_timeout * FLUSH_TIMEOUT_FACTOR;
        let apply = self.try_apply(&window);
        self.engine.within(OP, limit, Effect::Unknown, apply).await
    }
}

impl CassandraClicks {
    async fn find_next_run(&self, after: Option<(Day, i64)>) -> PortResult<Option<StoredRun>> {
        let (first, mut behind) = match after {
            Some((day, id)) => (day, Some((day, id))),
            None => (Day::FIRST, None),
        };
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
            let runs = self.catalogue(OP, GET, number).await?;
            let after = behind.take().filter(|(last, _)| *last == day);
            let next = runs
                .into_iter()
                .find(|(id, _)| after.is_none_or(|(_, last)| *id > last));
            if let Some((id, run)) = next {
                let subjects = u32::try_from(run.subjects);
                return Ok(Some(StoredRun {
                    id,
                    day,
                    subjects: subjects.map_err(|error| corrupt(OP, error))?,
                }));
            }
        }
    }
}
