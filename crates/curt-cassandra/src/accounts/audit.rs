use async_trait::async_trait;
use curt_core::ports::{AuditEntry, AuditLog};
use curt_core::{Clock, OwnerId, PortResult, SystemClock, UnixMillis};
use scylla::DeserializeRow;

use super::CassandraAccounts;
use crate::links::lists::sortable;
use crate::ordered::{POSITION_BYTES_MAX, Place, Span};
use crate::pause::pause;
use crate::statement::{Cql, Decided};
use crate::together::together;

const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.audit (namespace, month, number, at, actor, action, subject, address, mark) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS",
);
const GET: Cql = Cql::read(
    "SELECT at, actor, action, subject, address, mark FROM KEYSPACE.audit \
     WHERE namespace = ? AND month = ? AND number = ?",
);

const LIST: &str = "audit";
/// A month in microseconds.
const MONTH: i64 = 30 * 24 * 3_600 * 1_000_000;
const ENTRIES_AT_ONCE: usize = 200;

type EntryValues<'a> = (
    &'a str,
    i64,
    i64,
    i64,
    Option<i64>,
    &'a str,
    &'a str,
    Option<&'a str>,
    &'a [u8],
);

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
impl AuditLog for CassandraAccounts {
    async fn record(&self, entry: &AuditEntry) -> PortResult<()> {
        const OP: &str = "record an action";
        self.engine.change(OP, self.try_record(OP, entry)).await
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> PortResult<Vec<(u64, AuditEntry)>> {
        const OP: &str = "list actions";
        self.engine
            .list(OP, self.entries_before(OP, before, limit))
            .await
    }
}

impl CassandraAccounts {
    /// The number is the time in microseconds, or the next one that is free.
    async fn try_record(&self, op: &'static str, entry: &AuditEntry) -> PortResult<()> {
        let mut last = self.last_number.lock().await;
        let mut number = SystemClock.now().0.saturating_mul(1_000).max(*last + 1);
        *last = number;
        let mark: [u8; 16] = rand::random();
        loop {
            self.lists.add(op, [place(number)]).await?;
            let (namespace, month) = (&*self.namespace, number.div_euclid(MONTH));
            let values = self.entry_values(number, entry, &mark);
            if let Decided::Applied = self.engine.decide(op, INSERT, values).await? {
                return Ok(());
            }
            let values = (namespace, month, number);
            let row: Option<AuditRow> = self.engine.first(op, GET.serial(), values).await?;
            match row {
                Some(row) if row.mark == mark => return Ok(()),
                Some(_) => {
                    number += 1;
                    *last = number;
                }
                None => pause().await,
            }
        }
    }

    /// Adds an entry under its number, unless there is one, and says whether it did.
    pub(super) async fn put_entry(
        &self,
        op: &'static str,
        number: i64,
        entry: &AuditEntry,
    ) -> PortResult<bool> {
        self.lists.add(op, [place(number)]).await?;
        let mark: [u8; 16] = rand::random();
        loop {
            let values = self.entry_values(number, entry, &mark);
            match self.engine.decide(op, INSERT, values).await? {
                Decided::Applied => return Ok(true),
                Decided::Refused | Decided::Unknown(_) => {}
            }
            let values = (&*self.namespace, number.div_euclid(MONTH), number);
            let row: Option<AuditRow> = self.engine.first(op, GET.serial(), values).await?;
            match row {
                Some(row) => return Ok(row.mark == mark),
                None => pause().await,
            }
        }
    }

    fn entry_values<'a>(
        &'a self,
        number: i64,
        entry: &'a AuditEntry,
        mark: &'a [u8],
    ) -> EntryValues<'a> {
        (
            &self.namespace,
            number.div_euclid(MONTH),
            number,
            entry.at.0,
            entry.actor.map(|actor| actor.0.cast_signed()),
            &entry.action,
            &entry.subject,
            entry.address.as_deref(),
            mark,
        )
    }

    async fn entries_before(
        &self,
        op: &'static str,
        before: Option<u64>,
        limit: usize,
    ) -> PortResult<Vec<(u64, AuditEntry)>> {
        let end = vec![u8::MAX; POSITION_BYTES_MAX];
        let before = before.and_then(|number| i64::try_from(number).ok());
        let mut span = Span {
            list: LIST.to_owned(),
            buckets: (Vec::new(), end.clone()),
            positions: (
                Vec::new(),
                before.map_or(end, |before| sortable(before).to_vec()),
            ),
            is_rising: false,
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = (limit - found.len()).min(ENTRIES_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let numbers = entries.entries.iter();
            let numbers = numbers.map(|entry| number_at(&entry.place.position));
            let rows = together(numbers.map(|number| async move {
                let number = number.unwrap_or(i64::MIN);
                let values = (&*self.namespace, number.div_euclid(MONTH), number);
                let row: Option<AuditRow> = self.engine.first(op, GET, values).await?;
                Ok(row.map(|row| (number.cast_unsigned(), row.into_entry())))
            }));
            found.extend(rows.await?.into_iter().flatten());
            if let Some(last) = entries.entries.last() {
                span.follow(&last.place);
            }
            if entries.is_all {
                break;
            }
        }
        Ok(found)
    }
}

impl AuditRow {
    fn into_entry(self) -> AuditEntry {
        AuditEntry {
            at: UnixMillis(self.at),
            actor: self.actor.map(|actor| OwnerId(actor.cast_unsigned())),
            action: self.action.into(),
            subject: self.subject.into(),
            address: self.address.map(Into::into),
        }
    }
}

fn place(number: i64) -> Place {
    Place {
        list: LIST.to_owned(),
        bucket: sortable(number.div_euclid(MONTH)).to_vec(),
        position: sortable(number).to_vec(),
    }
}

fn number_at(position: &[u8]) -> Option<i64> {
    let bytes = position.try_into().ok()?;
    Some(crate::links::lists::of_sortable(bytes))
}
