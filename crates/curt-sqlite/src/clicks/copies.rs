use async_trait::async_trait;
use curt_adapter_kit::{ClickCopies, EncodedWindow, StoredRun};
use curt_core::ports::{Salt, StreamId, StreamPartition};
use curt_core::{Day, PortResult};
use rusqlite::{Connection, OptionalExtension};

use super::{SqliteClicks, apply};

const OP: &str = "export clicks";

#[async_trait]
impl ClickCopies for SqliteClicks {
    async fn next_run(&self, after: Option<(Day, i64)>) -> PortResult<Option<StoredRun>> {
        let (day, id) = after.map_or((-1, i64::MIN), |(day, id)| (i64::from(day.number()), id));
        let read = move |connection: &Connection| {
            connection
                .prepare_cached(
                    "SELECT id, day, subjects FROM rollup_runs WHERE (day, id) > (?1, ?2) ORDER BY day, id LIMIT 1",
                )?
                .query_row((day, id), |row| {
                    Ok(StoredRun {
                        id: row.get(0)?,
                        day: Day::numbered(row.get(1)?),
                        subjects: row.get(2)?,
                    })
                })
                .optional()
        };
        self.db.readers.scan_in_background(OP, read).await
    }

    async fn all_offsets(&self) -> PortResult<Vec<(StreamPartition, u64)>> {
        let read = |connection: &Connection| {
            connection
                .prepare_cached(
                    "SELECT stream, partition, next_offset FROM click_offsets ORDER BY 1, 2",
                )?
                .query_map((), |row| {
                    let stream = StreamId(row.get::<_, i64>(0)?.cast_unsigned());
                    let number = row.get(1)?;
                    let next = row.get::<_, i64>(2)?.cast_unsigned();
                    Ok((StreamPartition { stream, number }, next))
                })?
                .collect()
        };
        self.db.readers.scan_in_background(OP, read).await
    }

    async fn all_salts(&self) -> PortResult<Vec<(Day, Salt)>> {
        let read = |connection: &Connection| {
            connection
                .prepare_cached("SELECT day, salt FROM click_salts ORDER BY day")?
                .query_map((), |row| Ok((Day::numbered(row.get(0)?), row.get(1)?)))?
                .collect()
        };
        self.db.readers.scan_in_background(OP, read).await
    }

    async fn apply_encoded(&self, window: EncodedWindow) -> PortResult<bool> {
        let write = self
            .db
            .writer
            .write("add clicks", window.rows(), move |work| {
                apply::apply(work.connection, &window)
            });
        write.await
    }
}
