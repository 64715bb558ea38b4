use async_trait::async_trait;
use curt_core::ports::{AuditEntry, AuditLog};
use curt_core::{OwnerId, PortResult, UnixMillis};
use rusqlite::Row;

use super::{SqliteAccounts, rows_max};

#[async_trait]
impl AuditLog for SqliteAccounts {
    async fn record(&self, entry: &AuditEntry) -> PortResult<()> {
        let entry = entry.clone();
        self.db
            .writer
            .write("record an action", 1, move |work| {
                work.connection
                    .prepare_cached(
                        "INSERT INTO audit (at, actor, action, subject, address) VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute((
                        entry.at.0,
                        entry.actor.map(|actor| actor.0.cast_signed()),
                        &*entry.action,
                        &*entry.subject,
                        entry.address.as_deref(),
                    ))
                    .map(drop)
            })
            .await
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> PortResult<Vec<(u64, AuditEntry)>> {
        let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        self.db
            .readers
            .scan("list actions", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT seq, at, actor, action, subject, address FROM audit \
                         WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2",
                    )?
                    .query_map((before, rows_max(limit)), numbered_entry_of)?
                    .collect()
            })
            .await
    }
}

fn numbered_entry_of(row: &Row<'_>) -> rusqlite::Result<(u64, AuditEntry)> {
    let number = row.get::<_, i64>(0)?.cast_unsigned();
    let actor: Option<i64> = row.get(2)?;
    let entry = AuditEntry {
        at: UnixMillis(row.get(1)?),
        actor: actor.map(|actor| OwnerId(actor.cast_unsigned())),
        action: row.get(3)?,
        subject: row.get(4)?,
        address: row.get(5)?,
    };
    Ok((number, entry))
}
