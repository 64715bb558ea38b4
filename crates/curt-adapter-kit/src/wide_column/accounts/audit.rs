use async_trait::async_trait;
use curt_core::ports::{AuditEntry, AuditLog};
use curt_core::{Clock, PortResult, SystemClock};

use super::WideAccounts;
use crate::wide_column::ordered::{ListPlace, Span, of_sortable, sortable};
use crate::wide_column::{Decided, Mark, ReadMode, pause, together};

const LIST: &str = "audit";
/// A month in microseconds.
const MONTH: i64 = 30 * 24 * 3_600 * 1_000_000;
const ENTRIES_AT_ONCE: usize = 200;

/// Actions as an engine keeps them.
#[async_trait]
pub trait AuditRows: Send + Sync {
    /// The action with this number, and the call that recorded it.
    async fn get_action(
        &self,
        op: &'static str,
        number: i64,
        mode: ReadMode,
    ) -> PortResult<Option<(AuditEntry, Mark)>>;

    /// Stores an action, if there is none with this number.
    async fn insert_action(
        &self,
        op: &'static str,
        number: i64,
        entry: &AuditEntry,
        mark: Mark,
    ) -> PortResult<Decided>;
}

#[async_trait]
impl AuditLog for WideAccounts {
    async fn record(&self, entry: &AuditEntry) -> PortResult<()> {
        const OP: &str = "record an action";
        self.deadlines.change(OP, self.try_record(OP, entry)).await
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> PortResult<Vec<(u64, AuditEntry)>> {
        const OP: &str = "list actions";
        self.deadlines
            .list(OP, self.entries_before(OP, before, limit))
            .await
    }
}

impl WideAccounts {
    /// The number is the time in microseconds, or the next one that is free.
    async fn try_record(&self, op: &'static str, entry: &AuditEntry) -> PortResult<()> {
        let mut last = self.last_number.lock().await;
        let mut number = SystemClock.now().0.saturating_mul(1_000).max(*last + 1);
        *last = number;
        let mark = Mark::random();
        loop {
            self.lists.add(op, [place(number)]).await?;
            let recorded = self.rows.insert_action(op, number, entry, mark).await?;
            if let Decided::Applied = recorded {
                return Ok(());
            }
            match self.rows.get_action(op, number, ReadMode::Decided).await? {
                Some((_, by)) if by == mark => return Ok(()),
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
        let mark = Mark::random();
        loop {
            let recorded = self.rows.insert_action(op, number, entry, mark).await?;
            if let Decided::Applied = recorded {
                return Ok(true);
            }
            match self.rows.get_action(op, number, ReadMode::Decided).await? {
                Some((_, by)) => return Ok(by == mark),
                None => pause().await,
            }
        }
    }

    async fn entries_before(
        &self,
        op: &'static str,
        before: Option<u64>,
        limit: usize,
    ) -> PortResult<Vec<(u64, AuditEntry)>> {
        let mut span = Span::all(LIST, false);
        if let Some(before) = before.and_then(|number| i64::try_from(number).ok()) {
            span.positions.1 = sortable(before).to_vec();
        }
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = (limit - found.len()).min(ENTRIES_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let numbers = entries.entries.iter();
            let numbers = numbers.map(|entry| number_at(&entry.place.position));
            let rows = together(numbers.map(|number| async move {
                let number = number.unwrap_or(i64::MIN);
                let row = self.rows.get_action(op, number, ReadMode::Acknowledged);
                let row = row.await?;
                Ok(row.map(|(entry, _)| (number.cast_unsigned(), entry)))
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

fn place(number: i64) -> ListPlace {
    ListPlace {
        list: LIST.to_owned(),
        bucket: sortable(number.div_euclid(MONTH)).to_vec(),
        position: sortable(number).to_vec(),
    }
}

fn number_at(position: &[u8]) -> Option<i64> {
    let bytes = position.try_into().ok()?;
    Some(of_sortable(bytes))
}
