//! What could not be read when it was to be merged.

use curt_core::ports::ClickDamage;
use curt_core::{PortResult, UnixMillis, names};

use crate::engine::{Engine, Value, column};
use crate::failure::BACKEND;

/// The number of each is part of the format.
#[derive(Clone, Copy, Debug)]
pub(super) enum Damaged {
    Run = 0,
    Block = 1,
}

const NOTE: &str = "INSERT INTO click_damage (kind, id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const SUM: &str = "SELECT (extract(epoch FROM min(found_at)) * 1000)::bigint, \
     count(*) FILTER (WHERE kind = 0), count(*) FILTER (WHERE kind = 1) FROM click_damage";

/// Notes that it cannot be read.
pub(super) async fn set_aside(engine: &Engine, kind: Damaged, id: i64) -> PortResult<()> {
    tracing::error!(
        event = names::event::CLICKS_SET_ASIDE,
        backend = BACKEND,
        kind = ?kind,
        id,
        "clicks database is damaged"
    );
    let values: [Value<'_>; 2] = [&(kind as i16), &id];
    engine.write("note damage", NOTE, &values).await.map(drop)
}

pub(super) async fn damage(engine: &Engine) -> PortResult<Option<ClickDamage>> {
    const OP: &str = "ask for damage";
    let rows = engine.read(OP, SUM, &[]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let since: Option<i64> = column(OP, row, 0)?;
    let (runs, blocks): (i64, i64) = (column(OP, row, 1)?, column(OP, row, 2)?);
    Ok(since.map(|since| ClickDamage {
        since: UnixMillis(since),
        runs: runs.cast_unsigned(),
        blocks: blocks.cast_unsigned(),
    }))
}
