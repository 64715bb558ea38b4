use async_trait::async_trait;
use curt_core::ports::{AuditEntry, AuditLog};
use curt_core::{OwnerId, PortResult};
use tokio_postgres::Row;

use super::PostgresAccounts;
use crate::decode::{rows_max, time};
use crate::engine::{Value, column};

const INSERT: &str =
    "INSERT INTO audit (at, actor, action, subject, address) VALUES ($1, $2, $3, $4, $5)";
const LIST: &str = "SELECT seq, at, actor, action, subject, address FROM audit \
     WHERE seq < $1 ORDER BY seq DESC LIMIT $2";

#[async_trait]
impl AuditLog for PostgresAccounts {
    async fn record(&self, entry: &AuditEntry) -> PortResult<()> {
        // Somebody tried to sign in as whatever they typed, and the engine takes no NUL.
        let subject = entry.subject.replace('\0', "\u{fffd}");
        let values: [Value<'_>; 5] = [
            &entry.at.0,
            &entry.actor.map(|actor| actor.0.cast_signed()),
            &&*entry.action,
            &subject,
            &entry.address.as_deref(),
        ];
        let engine = self.tables.engine().await?;
        engine
            .write("record an action", INSERT, &values)
            .await
            .map(drop)
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> PortResult<Vec<(u64, AuditEntry)>> {
        const OP: &str = "list actions";
        let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, LIST, &[&before, &rows_max(limit)]).await?;
        rows.iter().map(|row| numbered_entry_of(OP, row)).collect()
    }
}

fn numbered_entry_of(op: &'static str, row: &Row) -> PortResult<(u64, AuditEntry)> {
    let number = column::<i64>(op, row, 0)?.cast_unsigned();
    let actor: Option<i64> = column(op, row, 2)?;
    let entry = AuditEntry {
        at: time(op, row, 1)?,
        actor: actor.map(|actor| OwnerId(actor.cast_unsigned())),
        action: column(op, row, 3)?,
        subject: column(op, row, 4)?,
        address: column(op, row, 5)?,
    };
    Ok((number, entry))
}
