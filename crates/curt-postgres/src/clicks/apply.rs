//! Adding a flush.

use std::time::Duration;

use curt_adapter_kit::{Effect, EncodedWindow};
use curt_core::PortResult;
use curt_core::ports::{ClickWindow, StreamPartition};
use deadpool_postgres::Transaction;
use tokio_postgres::{Error, Row};

use super::{blocks, runs};
use crate::engine::{Engine, Session, Value, column};
use crate::failure::BACKEND;

const OP: &str = "add clicks";

const OFFSET: &str = "SELECT next_offset FROM click_offsets WHERE stream = $1 AND partition = $2";
const MOVE: &str = "UPDATE click_offsets SET next_offset = $4 \
     WHERE stream = $1 AND partition = $2 AND next_offset = $3 RETURNING 1";
/// An offset that is absent counts as 0. Two that add it at once meet at its primary key.
const MOVE_FROM_START: &str = "INSERT INTO click_offsets (stream, partition, next_offset) VALUES ($1, $2, $4) \
     ON CONFLICT (stream, partition) DO UPDATE SET next_offset = excluded.next_offset \
     WHERE click_offsets.next_offset = $3 RETURNING 1";

pub(super) async fn offset(
    engine: &Engine,
    StreamPartition { stream, number }: StreamPartition,
) -> PortResult<u64> {
    const OP: &str = "read a click offset";
    let values: [Value<'_>; 2] = [&stream.0.cast_signed(), &i64::from(number)];
    let rows = engine.read(OP, OFFSET, &values).await?;
    let offset: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    Ok(offset.cast_unsigned())
}

pub(super) async fn apply(engine: &Engine, flush: ClickWindow) -> PortResult<bool> {
    let encoded = EncodedWindow::encode(BACKEND, OP, flush).await?;
    apply_encoded(engine, &encoded).await
}

pub(super) async fn apply_encoded(engine: &Engine, encoded: &EncodedWindow) -> PortResult<bool> {
    let mut client = engine.client(OP).await?;
    let timeout = statement_timeout(engine.flush_timeout());
    let work = run(&mut client, encoded, &timeout);
    let done = engine.within_flush_timeout(OP, Effect::Unknown, work).await;
    engine.finish(OP, Effect::Unknown, client, done)
}

/// Lets the engine end a statement by itself before the deadline, so that its clear answer comes first.
fn statement_timeout(deadline: Duration) -> String {
    let timeout = (deadline * 5 / 6).as_millis().max(1);
    format!("SET LOCAL statement_timeout = {timeout}")
}

/// A transaction that is dropped is rolled back.
async fn run(client: &mut Session, window: &EncodedWindow, timeout: &str) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    // The session's own is that of lists and reports.
    transaction.batch_execute(timeout).await?;
    if !move_offset(&transaction, window).await? {
        transaction.rollback().await?;
        return Ok(false);
    }
    for run in &window.runs {
        runs::add(&transaction, run).await?;
    }
    for block in &window.blocks {
        blocks::add(&transaction, block).await?;
    }
    transaction.commit().await?;
    Ok(true)
}

async fn move_offset(transaction: &Transaction<'_>, flush: &EncodedWindow) -> Result<bool, Error> {
    let StreamPartition { stream, number } = flush.partition;
    let sql = match flush.from {
        0 => MOVE_FROM_START,
        _ => MOVE,
    };
    let values: [Value<'_>; 4] = [
        &stream.0.cast_signed(),
        &i64::from(number),
        &flush.from.cast_signed(),
        &flush.to.cast_signed(),
    ];
    Ok(!query(transaction, sql, &values).await?.is_empty())
}

pub(super) async fn query(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, Error> {
    let statement = transaction.prepare_cached(sql).await?;
    transaction.query(&statement, values).await
}
