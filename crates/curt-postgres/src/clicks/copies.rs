use async_trait::async_trait;
use curt_adapter_kit::{ClickCopies, EncodedWindow, StoredRun};
use curt_core::ports::{Salt, StreamId, StreamPartition};
use curt_core::{Day, PortResult};
use tokio_postgres::Row;

use super::{PostgresClicks, apply};
use crate::decode::{corrupt, hash, small};
use crate::engine::column;

const OP: &str = "export clicks";
const NEXT_RUN: &str =
    "SELECT id, day, subjects FROM rollup_runs WHERE (day, id) > ($1, $2) ORDER BY day, id LIMIT 1";
const OFFSETS: &str = "SELECT stream, partition, next_offset FROM click_offsets ORDER BY 1, 2";
const SALTS: &str = "SELECT salt, day FROM click_salts ORDER BY day";

#[async_trait]
impl ClickCopies for PostgresClicks {
    async fn next_run(&self, after: Option<(Day, i64)>) -> PortResult<Option<StoredRun>> {
        let (day, id) = after.map_or((-1, i64::MIN), |(day, id)| (day.number().cast_signed(), id));
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, NEXT_RUN, &[&day, &id]).await?;
        let run = |row: &Row| {
            Ok(StoredRun {
                id: column(OP, row, 0)?,
                day: day_of(row, 1)?,
                subjects: small(OP, column(OP, row, 2)?)?,
            })
        };
        rows.first().map(run).transpose()
    }

    async fn all_offsets(&self) -> PortResult<Vec<(StreamPartition, u64)>> {
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, OFFSETS, &[]).await?;
        let offset = |row: &Row| {
            let stream = StreamId(column::<i64>(OP, row, 0)?.cast_unsigned());
            let number = small(OP, column(OP, row, 1)?)?;
            let next = column::<i64>(OP, row, 2)?.cast_unsigned();
            Ok((StreamPartition { stream, number }, next))
        };
        rows.iter().map(offset).collect()
    }

    async fn all_salts(&self) -> PortResult<Vec<(Day, Salt)>> {
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, SALTS, &[]).await?;
        let salt = |row: &Row| Ok((day_of(row, 1)?, hash(OP, row, 0)?));
        rows.iter().map(salt).collect()
    }

    async fn apply_encoded(&self, window: EncodedWindow) -> PortResult<bool> {
        let engine = self.tables.engine().await?;
        let _turn = self.turn.lock().await;
        apply::apply_encoded(engine, &window).await
    }
}

fn day_of(row: &Row, index: usize) -> PortResult<Day> {
    let day: i32 = column(OP, row, index)?;
    let day = u32::try_from(day).map_err(|_| corrupt(OP, day))?;
    Ok(Day::numbered(day))
}
