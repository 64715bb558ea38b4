//! What could not be read when it was to be merged.

use curt_core::ports::ClickDamage;
use curt_core::{PortResult, UnixMillis, names};
use rusqlite::Connection;

use super::SqliteClicks;
use crate::failure::BACKEND;

/// The number of each is part of the format.
#[derive(Clone, Copy, Debug)]
pub(super) enum Damaged {
    Run = 0,
    Block = 1,
}

impl SqliteClicks {
    /// Notes that it cannot be read.
    pub(super) async fn set_aside(&self, kind: Damaged, id: i64) -> PortResult<()> {
        tracing::error!(
            event = names::event::CLICKS_SET_ASIDE,
            backend = BACKEND,
            file = %self.db.path.display(),
            kind = ?kind,
            id,
            "clicks database is damaged"
        );
        let note = "INSERT INTO click_damage (kind, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.db
            .writer
            .write("note damage", 1, move |work| {
                let mut note = work.connection.prepare_cached(note)?;
                note.execute((kind as u8, id)).map(drop)
            })
            .await
    }
}

pub(super) fn damage(connection: &Connection) -> rusqlite::Result<Option<ClickDamage>> {
    let sum = "SELECT min(found_at), count(*) FILTER (WHERE kind = 0), count(*) FILTER (WHERE kind = 1) FROM click_damage";
    connection.prepare_cached(sum)?.query_row((), |row| {
        let since: Option<i64> = row.get(0)?;
        let (runs, blocks): (u32, u32) = (row.get(1)?, row.get(2)?);
        Ok(since.map(|since| ClickDamage {
            since: UnixMillis(since),
            runs: runs.into(),
            blocks: blocks.into(),
        }))
    })
}
