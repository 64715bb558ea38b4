use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::AuditRows;
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode};
use curt_core::ports::AuditEntry;
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;

use super::{CassandraAccounts, mark_of};
use crate::failure::corrupt;
use crate::statement::Cql;

const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.audit (namespace, month, number, at, actor, action, subject, address, mark) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS",
);
const GET: Cql = Cql::read(
    "SELECT at, actor, action, subject, address, mark FROM KEYSPACE.audit \
     WHERE namespace = ? AND month = ? AND number = ?",
);

/// A month in microseconds, which are the numbers of actions.
const MONTH: i64 = 30 * 24 * 3_600 * 1_000_000;

#[derive(DeserializeRow)]
struct AuditRow {
    at: i64,
    actor: Option<i64>,
    action: String,
    subject: String,
    address: Option<String>,
    mark: Vec<u8>,
}

#[async_trait]
impl AuditRows for CassandraAccounts {
    async fn get_action(
        &self,
        op: &'static str,
        number: i64,
        mode: ReadMode,
    ) -> PortResult<Option<(AuditEntry, Mark)>> {
        let values = (&*self.namespace, number.div_euclid(MONTH), number);
        let row: Option<AuditRow> = self.engine.first(op, GET.at(mode), values).await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let entry = AuditEntry {
            at: UnixMillis(row.at),
            actor: row.actor.map(|actor| OwnerId(actor.cast_unsigned())),
            action: row.action.into(),
            subject: row.subject.into(),
            address: row.address.map(Into::into),
        };
        let mark = mark_of(row.mark).ok_or_else(|| corrupt(op, "a mark"))?;
        Ok(Some((entry, mark)))
    }

    async fn insert_action(
        &self,
        op: &'static str,
        number: i64,
        entry: &AuditEntry,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = (
            &*self.namespace,
            number.div_euclid(MONTH),
            number,
            entry.at.0,
            entry.actor.map(|actor| actor.0.cast_signed()),
            &*entry.action,
            &*entry.subject,
            entry.address.as_deref(),
            &mark.0[..],
        );
        self.engine.decide(op, INSERT, values).await
    }
}
