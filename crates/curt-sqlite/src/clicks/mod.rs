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
//! | 90 days by hour and class | 3 ms |
//! | a page of a hundred clicks among a million | 0.2 ms |
//! | a flush of 20,000 rollups of 2,857 links, with as many clicks | 70 to 170 ms |
//! | the slowest create beside 19 such flushes | 150 ms |

mod apply;
mod blocks;
mod damage;
mod report;
mod salts;
mod subjects;

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use curt_adapter_kit::click_blocks;
use curt_core::ports::{
    ClickDamage, ClickPage, ClickQuery, ClickRanking, ClickReports, ClickStore, ClickWindow,
    HourRange, Salt, StreamPartition, Top,
};
use curt_core::{
    ClickSubject, Day, Dimension, ErrorKind, PortError, PortResult, Rollup, UnixMillis, names,
};

use super::Sqlite;
use super::disk;
use super::failure::BACKEND;
use damage::{ApplyProgress, DamagedRows};

pub(super) struct SqliteClicks {
    db: Arc<Sqlite>,
    /// What this process has found damaged; `None` until it met some.
    damaged: Mutex<Option<DamagedRows>>,
}

/// Damaged things that are found one by one before everything is set aside.
const TRIES_MAX: usize = 64;

impl SqliteClicks {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self {
            db,
            damaged: Mutex::default(),
        }
    }

    fn damaged(&self) -> MutexGuard<'_, Option<DamagedRows>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a flush to a file in which damage was met.
    async fn apply_past_damage(&self, flush: &Arc<ClickWindow>) -> PortResult<bool> {
        let rows = flush.days.len() + flush.clicks.len();
        for tries in 1.. {
            let progress = Arc::new(ApplyProgress::default());
            let (flush, at) = (Arc::clone(flush), Arc::clone(&progress));
            let damaged = self.damaged().clone().unwrap_or_default();
            let of_call = Arc::clone(&flush);
            let write = self.db.writer.write("add clicks", rows, move |work| {
                damage::apply_past(work.connection, &of_call, &damaged, &at)
            });
            let added = write.await;
            match &added {
                Err(error) if is_damage(error) && tries <= TRIES_MAX => {
                    let mut known = self.damaged();
                    let known = known.get_or_insert_default();
                    known.note_failed_row(&flush, &progress);
                    if tries == 1 {
                        self.db.readers.look_up("look for damage", |connection| {
                            known.probe(connection, &flush);
                            Ok(())
                        })?;
                    }
                    if tries == TRIES_MAX {
                        known.mark_all_damaged(&flush, &progress);
                    }
                }
                _ => return added,
            }
        }
        Ok(false)
    }
}

/// A constraint that is violated, or a call that breaks off, is taken for damage, too: one row must not stop all counting.
fn is_damage(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Bug)
}

#[async_trait]
impl ClickStore for SqliteClicks {
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64> {
        self.db
            .readers
            .look_up("read a click offset", |connection| {
                apply::offset(connection, partition)
            })
    }

    async fn apply(&self, flush: ClickWindow) -> PortResult<bool> {
        let flush = Arc::new(flush);
        if self.damaged().is_some() {
            return self.apply_past_damage(&flush).await;
        }
        let rows = flush.days.len() + flush.clicks.len();
        let of_call = Arc::clone(&flush);
        let write = self.db.writer.write("add clicks", rows, move |work| {
            apply::apply(work.connection, &of_call)
        });
        let added = write.await;
        let Some(error) = added.as_ref().err().filter(|error| is_damage(error)) else {
            return added;
        };
        let is_news = self.damaged().replace(DamagedRows::default()).is_none();
        if is_news {
            tracing::error!(
                event = names::event::CLICKS_SET_ASIDE,
                backend = BACKEND,
                file = %self.db.path.display(),
                %error,
                "clicks database is damaged"
            );
        }
        self.apply_past_damage(&flush).await
    }

    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt> {
        const OP: &str = "read the salt of a day";
        let kept = self
            .db
            .readers
            .look_up(OP, |connection| salts::find_salt(connection, day))?;
        if let Some(salt) = kept {
            return Ok(salt);
        }
        self.db
            .writer
            .write(OP, 1, move |work| {
                salts::keep_salt(work.connection, day, fresh)
            })
            .await
    }

    async fn forget_salts(&self, before: Day) -> PortResult<()> {
        self.db
            .writer
            .write("forget salts", 1, move |work| {
                salts::forget_salts(work.connection, before)
            })
            .await
    }

    async fn purge_clicks(&self, before: UnixMillis, limit: usize) -> PortResult<u64> {
        click_blocks::purge(self, before, limit).await
    }

    async fn trim_clicks(&self, bytes_max: u64, limit: usize) -> PortResult<u64> {
        click_blocks::trim(self, bytes_max, limit).await
    }

    async fn merge_clicks(&self) -> PortResult<()> {
        click_blocks::merge_small(self).await
    }

    /// The file grows only at a checkpoint: what is in the log and not in the file is promised.
    async fn free_bytes(&self) -> PortResult<Option<u64>> {
        const OP: &str = "read free disk space";
        let bytes: u64 = self.db.readers.look_up(OP, |connection| {
            let read = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
            let (pages, page_bytes): (u32, u32) = (read("page_count")?, read("page_size")?);
            Ok(u64::from(pages) * u64::from(page_bytes))
        })?;
        let in_file = fs::metadata(&self.db.path).map_or(0, |file| file.len());
        let promised = bytes.saturating_sub(in_file);
        Ok(disk::free_bytes(&self.db.path).map(|free| free.saturating_sub(promised)))
    }

    async fn checkpoint(&self) -> PortResult<()> {
        self.db.writer.checkpoint("checkpoint the clicks").await
    }

    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        self.db.readers.look_up("ask for damage", damage::damage)
    }

    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64> {
        self.db
            .writer
            .write("purge click rollups", limit, move |work| {
                apply::purge(work.connection, before, limit)
            })
            .await
    }
}

#[async_trait]
impl ClickReports for SqliteClicks {
    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<Rollup>> {
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

    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        click_blocks::read_page(self, query).await
    }

    async fn rank_clicks(&self, ranking: &ClickRanking) -> PortResult<Top> {
        click_blocks::rank(self, ranking).await
    }
}
