//! The click store.
//!
//! A subject's day is one row, whatever was counted on it: see `click_days`. Owners, tags and "everything" are
//! subjects of their own and have such rows too; adding up an owner's ten thousand links at each report would read
//! ten thousand times as much.
//!
//! # Figures
//! One run of `scripts/soak.sh` (`tests/click_scale.rs`) on two busy cores:
//!
//! | what | time |
//! |---|---|
//! | top ten of 1,000 referrers in every hour of 90 days, 10M clicks | 16 ms |
//! | the same of 200 countries | 8 ms |
//! | 90 days by hour and kind | 3 ms |
//! | a page of a hundred visits among a million | 0.2 ms |
//! | a flush of 20,000 sums of 2,857 links, with as many visits | 70 to 170 ms |
//! | the slowest create beside 19 such flushes | 150 ms |

mod apply;
mod report;
mod salts;
mod subjects;
mod visits;

use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{
    ClickFlush, ClickStore, HourRange, Salt, StreamPartition, Top, VisitPage, VisitQuery,
};
use curt_core::{
    ClickSubject, ClickSum, Day, Dimension, ErrorKind, PortError, PortResult, UnixMillis,
};

use super::Sqlite;
use super::failure::BACKEND;

pub(super) struct SqliteClicks {
    db: Arc<Sqlite>,
}

impl SqliteClicks {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self { db }
    }
}

#[async_trait]
impl ClickStore for SqliteClicks {
    async fn position(&self, partition: StreamPartition) -> PortResult<u64> {
        self.db
            .readers
            .look_up("read a click position", |connection| {
                apply::position(connection, partition)
            })
    }

    async fn apply(&self, flush: ClickFlush) -> PortResult<bool> {
        let rows = flush.days.len() + flush.visits.len();
        self.db
            .writer
            .write("add clicks", rows, move |work| {
                apply::apply(work.connection, &flush)
            })
            .await
    }

    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<ClickSum>> {
        let subject = subject.clone();
        self.db
            .readers
            .scan("read clicks by the hour", move |connection| {
                report::series(connection, &subject, dimension, range)
            })
            .await
    }

    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top> {
        let subject = subject.clone();
        self.db
            .readers
            .scan("rank clicks", move |connection| {
                report::top(connection, &subject, dimension, range, limit)
            })
            .await
    }

    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>> {
        let subject = subject.clone();
        self.db
            .readers
            .scan("count visitors", move |connection| {
                report::visitors(connection, &subject, from, before)
            })
            .await
    }

    async fn visits(&self, query: &VisitQuery) -> PortResult<VisitPage> {
        const OP: &str = "list visits";
        let ids = visits::ids_of(query).ok_or_else(|| {
            PortError::new(
                ErrorKind::Invalid,
                BACKEND,
                OP,
                "the cursor is not one of this list",
            )
        })?;
        let query = query.clone();
        self.db
            .readers
            .scan(OP, move |connection| visits::page(connection, &query, ids))
            .await
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        const OP: &str = "read the salt of a day";
        let kept = self
            .db
            .readers
            .look_up(OP, |connection| salts::find(connection, day))?;
        if let Some(salt) = kept {
            return Ok(salt);
        }
        self.db
            .writer
            .write(OP, 1, move |work| salts::keep(work.connection, day, fresh))
            .await
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        self.db
            .writer
            .write("forget salts", 1, move |work| {
                salts::forget(work.connection, before)
            })
            .await
    }

    async fn purge_visits(&self, before: UnixMillis, limit: usize) -> PortResult<u64> {
        self.db
            .writer
            .write("purge visits", limit, move |work| {
                visits::purge(work.connection, before, limit)
            })
            .await
    }

    async fn purge_sums(&self, before: Day, limit: usize) -> PortResult<u64> {
        self.db
            .writer
            .write("purge click sums", limit, move |work| {
                apply::purge(work.connection, before, limit)
            })
            .await
    }
}
