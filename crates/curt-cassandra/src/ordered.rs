//! Ordered lists: entries by position, in buckets that are partitions of bounded size.
//!
//! An entry is written before what it stands for, so that a crash in between leaves an entry that leads to nothing, and
//! never something that no list has. Readers look at what an entry leads to, and drop entries that lead elsewhere once
//! these are old enough that no writer can be about to make them true.
//!
//! Buckets are found through a directory. A bucket that is empty is dropped from there, as soon as no writer can have
//! remembered it: what was purged is not read over and over again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_adapter_kit::Effect;
use curt_core::{Clock, PortResult, SystemClock};
use scylla::DeserializeRow;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::statement::Cql;
use crate::together::together;

/// How long a writer remembers that a bucket is in the directory.
const BUCKET_KNOWN: Duration = Duration::from_secs(300);
/// How old an entry or a bucket must be to be dropped: longer than any write takes, and than clocks differ.
const DROPPED_AFTER: Duration = Duration::from_secs(900);
/// Buckets that writers remember at most.
const BUCKETS_KNOWN_MAX: usize = 100_000;
/// Buckets that are read at once.
const BUCKETS_AT_ONCE: usize = 16;
const BUCKETS_PER_PAGE: i32 = 256;
/// Entries of a bucket that are written in one request.
const ROWS_AT_ONCE: usize = 25;
/// Longer than any position.
pub(crate) const POSITION_BYTES_MAX: usize = 512;

const ADD: Cql = Cql::write(
    "INSERT INTO KEYSPACE.ordered (namespace, list, bucket, position, added) \
     VALUES (:namespace, :list, :bucket, :position, :added) USING TIMESTAMP :added_at",
);
const ADD_BUCKET: Cql = Cql::write(
    "INSERT INTO KEYSPACE.buckets (namespace, list, bucket, added) \
     VALUES (:namespace, :list, :bucket, :added) USING TIMESTAMP :added_at",
);
const DROP: Cql = Cql::write(
    "DELETE FROM KEYSPACE.ordered USING TIMESTAMP ? \
     WHERE namespace = ? AND list = ? AND bucket = ? AND position = ?",
);
const DROP_BUCKET: Cql = Cql::write(
    "DELETE FROM KEYSPACE.buckets USING TIMESTAMP ? WHERE namespace = ? AND list = ? AND bucket = ?",
);
const BUCKETS_RISING: Cql = Cql::read(
    "SELECT bucket, added FROM KEYSPACE.buckets \
     WHERE namespace = ? AND list = ? AND bucket >= ? AND bucket < ? ORDER BY bucket ASC LIMIT ?",
);
const BUCKETS_FALLING: Cql = Cql::read(
    "SELECT bucket, added FROM KEYSPACE.buckets \
     WHERE namespace = ? AND list = ? AND bucket >= ? AND bucket < ? ORDER BY bucket DESC LIMIT ?",
);
const ENTRIES_RISING: Cql = Cql::read(
    "SELECT position, added FROM KEYSPACE.ordered \
     WHERE namespace = ? AND list = ? AND bucket = ? AND position > ? AND position < ? \
     ORDER BY position ASC LIMIT ?",
);
const ENTRIES_FALLING: Cql = Cql::read(
    "SELECT position, added FROM KEYSPACE.ordered \
     WHERE namespace = ? AND list = ? AND bucket = ? AND position > ? AND position < ? \
     ORDER BY position DESC LIMIT ?",
);

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) list: String,
    pub(crate) bucket: Vec<u8>,
    pub(crate) position: Vec<u8>,
}

/// An entry as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    /// When it was written, in microseconds; also its timestamp.
    added: i64,
}

/// What part of a list to read, both ends excluded, and which way.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) list: String,
    /// From this bucket on, and up to that one, which is not read.
    pub(crate) buckets: (Vec<u8>, Vec<u8>),
    pub(crate) positions: (Vec<u8>, Vec<u8>),
    pub(crate) is_rising: bool,
}

impl Span {
    /// Goes on behind this place.
    pub(crate) fn follow(&mut self, place: &Place) {
        let Place {
            bucket, position, ..
        } = place.clone();
        match self.is_rising {
            true => (self.buckets.0, self.positions.0) = (bucket, position),
            false => (self.buckets.1, self.positions.1) = (successor(&bucket), position),
        }
    }
}

/// Entries in order, and whether there are no others.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) entries: Vec<Entry>,
    pub(crate) is_all: bool,
}

/// The lists of one namespace.
pub(crate) struct OrderedLists {
    engine: Arc<Engine>,
    namespace: Arc<str>,
    /// Buckets that are in the directory, and when that was written.
    known: Mutex<HashMap<(String, Vec<u8>), Instant>>,
    /// The timestamp that was given last, so that they grow.
    last: Mutex<i64>,
}

#[derive(DeserializeRow)]
struct BucketRow {
    bucket: Vec<u8>,
    added: i64,
}

#[derive(DeserializeRow)]
struct EntryRow {
    position: Vec<u8>,
    added: i64,
}

impl OrderedLists {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self {
            engine,
            namespace,
            known: Mutex::default(),
            last: Mutex::new(0),
        }
    }

    /// Adds entries, their buckets first. Called twice: no change. Entries are hints: a failure has changed nothing.
    pub(crate) async fn add(
        &self,
        op: &'static str,
        places: impl IntoIterator<Item = Place>,
    ) -> PortResult<()> {
        let places: Vec<Place> = places.into_iter().collect();
        let buckets = self.unknown_buckets(&places);
        self.add_buckets(op, buckets).await?;
        let added = self.timestamp();
        let adds = by_bucket(places).into_iter().map(|places| async move {
            let rows = places.into_iter();
            let rows = rows.map(
                |Place {
                     list,
                     bucket,
                     position,
                 }| { (&*self.namespace, list, bucket, position, added, added) },
            );
            let mut rows: Vec<_> = rows.collect();
            match (rows.pop(), rows.is_empty()) {
                (Some(only), true) => self.engine.write(op, Effect::None, ADD, only).await,
                (last, _) => {
                    rows.extend(last);
                    self.engine.write_rows(op, Effect::None, ADD, rows).await
                }
            }
        });
        together(adds).await.map(drop)
    }

    /// Reads entries until `limit` were found or there are no more.
    pub(crate) async fn read(
        &self,
        op: &'static str,
        span: &Span,
        limit: usize,
    ) -> PortResult<Entries> {
        let mut found = Entries::default();
        let (mut low, mut high) = span.buckets.clone();
        let mut at_once = 1;
        loop {
            let directory = self.directory(op, span, &low, &high).await?;
            let is_last = directory.len() < BUCKETS_PER_PAGE.unsigned_abs() as usize;
            let mut rest = &directory[..];
            while !rest.is_empty() {
                let left = limit - found.entries.len();
                if left == 0 {
                    return Ok(found);
                }
                let (now, later) = rest.split_at(at_once.min(rest.len()));
                self.read_buckets(op, span, now, left, &mut found).await?;
                rest = later;
                at_once = (at_once * 2).min(BUCKETS_AT_ONCE);
            }
            match directory.last() {
                Some(last) if !is_last => match span.is_rising {
                    true => low = successor(&last.bucket),
                    false => high = last.bucket.clone(),
                },
                _ => break,
            }
        }
        // A full page may be all there is; then the next one is empty.
        found.is_all = found.entries.len() < limit;
        Ok(found)
    }

    /// Drops entries that lead elsewhere, if they are old enough. They are hints, and so is this: it does not fail.
    pub(crate) async fn drop_stale(&self, op: &'static str, entries: Vec<Entry>) {
        let limit = self.droppable();
        let old = entries.into_iter().filter(|entry| entry.added < limit);
        self.drop_entries(op, old.collect()).await.ok();
    }

    /// Drops entries of which it is known that nothing will come of them.
    pub(crate) async fn drop_entries(
        &self,
        op: &'static str,
        entries: Vec<Entry>,
    ) -> PortResult<()> {
        let drop = |entry: Entry| async move {
            let Place {
                list,
                bucket,
                position,
            } = entry.place;
            // At its own timestamp: an entry that was added again stays.
            let values = (entry.added, &*self.namespace, list, bucket, position);
            self.engine.write(op, Effect::None, DROP, values).await
        };
        together(entries.into_iter().map(drop)).await?;
        Ok(())
    }

    async fn read_buckets(
        &self,
        op: &'static str,
        span: &Span,
        buckets: &[BucketRow],
        limit: usize,
        found: &mut Entries,
    ) -> PortResult<()> {
        let reads = buckets
            .iter()
            .map(|row| self.read_bucket(op, span, &row.bucket, limit));
        let read: Vec<Vec<Entry>> = together(reads).await?;
        let room = found.entries.len() + limit;
        for (row, entries) in buckets.iter().zip(read) {
            if entries.is_empty() && row.added < self.droppable() {
                self.drop_bucket(op, &span.list, row).await?;
            }
            let room = room - found.entries.len();
            found.entries.extend(entries.into_iter().take(room));
        }
        Ok(())
    }

    async fn read_bucket(
        &self,
        op: &'static str,
        span: &Span,
        bucket: &[u8],
        limit: usize,
    ) -> PortResult<Vec<Entry>> {
        let cql = match span.is_rising {
            true => ENTRIES_RISING,
            false => ENTRIES_FALLING,
        };
        let (low, high) = (&span.positions.0, &span.positions.1);
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let values = (&*self.namespace, &span.list, bucket, low, high, limit);
        let rows: Vec<EntryRow> = self.engine.rows(op, cql, values).await?;
        let entry = |row: EntryRow| Entry {
            place: Place {
                list: span.list.clone(),
                bucket: bucket.to_vec(),
                position: row.position,
            },
            added: row.added,
        };
        Ok(rows.into_iter().map(entry).collect())
    }

    async fn directory(
        &self,
        op: &'static str,
        span: &Span,
        low: &[u8],
        high: &[u8],
    ) -> PortResult<Vec<BucketRow>> {
        let cql = match span.is_rising {
            true => BUCKETS_RISING,
            false => BUCKETS_FALLING,
        };
        let values = (&*self.namespace, &span.list, low, high, BUCKETS_PER_PAGE);
        self.engine.rows(op, cql, values).await
    }

    /// Drops a bucket without any entry. A writer that adds to it meanwhile has written it to the directory at a later
    /// timestamp.
    async fn drop_bucket(&self, op: &'static str, list: &str, row: &BucketRow) -> PortResult<()> {
        let (low, high) = (Vec::<u8>::new(), vec![u8::MAX; POSITION_BYTES_MAX]);
        let values = (&*self.namespace, list, &row.bucket, low, high, 1);
        let rows: Vec<EntryRow> = self.engine.rows(op, ENTRIES_RISING, values).await?;
        if rows.is_empty() {
            let values = (row.added, &*self.namespace, list, &row.bucket);
            let dropped = self.engine.write(op, Effect::None, DROP_BUCKET, values);
            dropped.await.ok();
        }
        Ok(())
    }

    fn unknown_buckets(&self, places: &[Place]) -> Vec<(String, Vec<u8>)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = places
            .iter()
            .map(|place| (place.list.clone(), place.bucket.clone()));
        let is_known = |name: &(String, Vec<u8>)| {
            known
                .get(name)
                .is_some_and(|at| at.elapsed() < BUCKET_KNOWN)
        };
        let mut unknown: Vec<_> = names.filter(|name| !is_known(name)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }

    async fn add_buckets(
        &self,
        op: &'static str,
        buckets: Vec<(String, Vec<u8>)>,
    ) -> PortResult<()> {
        if buckets.is_empty() {
            return Ok(());
        }
        let (began, added) = (Instant::now(), self.timestamp());
        let add = |(list, bucket): (String, Vec<u8>)| async move {
            let values = (&*self.namespace, list, bucket, added, added);
            self.engine
                .write(op, Effect::None, ADD_BUCKET, values)
                .await
        };
        together(buckets.iter().cloned().map(add)).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > BUCKETS_KNOWN_MAX {
            known.clear();
        }
        known.extend(buckets.into_iter().map(|name| (name, began)));
        Ok(())
    }

    /// Entries and buckets that were written before this may be dropped.
    fn droppable(&self) -> i64 {
        SystemClock
            .now()
            .minus(DROPPED_AFTER)
            .0
            .saturating_mul(1_000)
    }

    /// The time in microseconds, and never the same twice.
    fn timestamp(&self) -> i64 {
        let now = SystemClock.now().0.saturating_mul(1_000);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = now.max(last.saturating_add(1));
        *last
    }
}

/// Places of one bucket together, some at a time.
fn by_bucket(mut places: Vec<Place>) -> Vec<Vec<Place>> {
    fn name(place: &Place) -> (&str, &[u8]) {
        (&place.list, &place.bucket)
    }
    places.sort_unstable_by(|one, other| name(one).cmp(&name(other)));
    let same = places.chunk_by(|one, next| name(one) == name(next));
    let parts = same.flat_map(|places| places.chunks(ROWS_AT_ONCE));
    parts.map(<[Place]>::to_vec).collect()
}

/// The first name after this one.
pub(crate) fn successor(bucket: &[u8]) -> Vec<u8> {
    [bucket, &[0]].concat()
}
