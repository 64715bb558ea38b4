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

use async_trait::async_trait;
use curt_core::{Clock, PortResult, SystemClock};
use tokio::time::Instant;

use super::together;

/// How long a writer remembers that a bucket is in the directory.
const BUCKET_KNOWN: Duration = Duration::from_secs(300);
/// How old an entry or a bucket must be to be dropped: longer than any write takes, and than clocks differ.
const DROPPED_AFTER: Duration = Duration::from_secs(900);
/// Buckets that writers remember at most.
const BUCKETS_KNOWN_MAX: usize = 100_000;
/// Buckets that are read at once.
const BUCKETS_AT_ONCE: usize = 16;
const BUCKETS_PER_PAGE: usize = 256;
/// Longer than any position.
pub const POSITION_BYTES_MAX: usize = 512;

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListPlace {
    pub list: String,
    pub bucket: Vec<u8>,
    pub position: Vec<u8>,
}

/// An entry as it was read.
#[derive(Clone, Debug)]
pub struct Entry {
    pub place: ListPlace,
    /// When it was written, in microseconds.
    pub added: i64,
}

/// A bucket of a directory.
#[derive(Clone, Debug)]
pub struct ListBucket {
    pub name: Vec<u8>,
    /// When it was written, in microseconds.
    pub added: i64,
}

/// Which buckets of a list to read: from `from` on, and up to `before`, which is not read.
#[derive(Clone, Copy, Debug)]
pub struct BucketQuery<'a> {
    pub list: &'a str,
    pub from: &'a [u8],
    pub before: &'a [u8],
    pub is_rising: bool,
    pub limit: usize,
}

/// Which entries of a bucket to read, both ends excluded.
#[derive(Clone, Copy, Debug)]
pub struct EntryQuery<'a> {
    pub list: &'a str,
    pub bucket: &'a [u8],
    pub low: &'a [u8],
    pub high: &'a [u8],
    pub is_rising: bool,
    pub limit: usize,
}

/// Directories and buckets as an engine keeps them.
#[async_trait]
pub trait ListRows: Send + Sync {
    /// Adds buckets, by list and name, to their directories. Called twice: the later time stays.
    async fn add_buckets(
        &self,
        op: &'static str,
        buckets: &[(String, Vec<u8>)],
        added: i64,
    ) -> PortResult<()>;

    /// Adds entries. Called twice: the later time stays.
    async fn add_entries(
        &self,
        op: &'static str,
        places: &[ListPlace],
        added: i64,
    ) -> PortResult<()>;

    async fn buckets(
        &self,
        op: &'static str,
        query: BucketQuery<'_>,
    ) -> PortResult<Vec<ListBucket>>;

    async fn entries(&self, op: &'static str, query: EntryQuery<'_>) -> PortResult<Vec<Entry>>;

    /// Removes an entry, unless it was added again since it was read.
    async fn drop_entry(&self, op: &'static str, entry: Entry) -> PortResult<()>;

    /// Removes a bucket from its directory, unless it was added again since it was read.
    async fn drop_bucket(
        &self,
        op: &'static str,
        list: &str,
        bucket: &ListBucket,
    ) -> PortResult<()>;
}

/// What part of a list to read, both ends excluded, and which way.
#[derive(Clone, Debug)]
pub struct Span {
    pub list: String,
    /// From this bucket on, and up to that one, which is not read.
    pub buckets: (Vec<u8>, Vec<u8>),
    pub positions: (Vec<u8>, Vec<u8>),
    pub is_rising: bool,
}

impl Span {
    /// A whole list.
    #[must_use]
    pub fn all(list: &str, is_rising: bool) -> Self {
        let end = vec![u8::MAX; POSITION_BYTES_MAX];
        Self {
            list: list.to_owned(),
            buckets: (Vec::new(), end.clone()),
            positions: (Vec::new(), end),
            is_rising,
        }
    }

    /// Goes on behind this place.
    pub fn follow(&mut self, place: &ListPlace) {
        let ListPlace {
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
pub struct Entries {
    pub entries: Vec<Entry>,
    pub is_all: bool,
}

/// The lists of one namespace.
pub struct OrderedLists {
    rows: Arc<dyn ListRows>,
    /// Buckets that are in the directory, and when that was written.
    known: Mutex<HashMap<(String, Vec<u8>), Instant>>,
    /// The timestamp that was given last, so that they grow.
    last: Mutex<i64>,
}

impl OrderedLists {
    #[must_use]
    pub fn new(rows: Arc<dyn ListRows>) -> Self {
        Self {
            rows,
            known: Mutex::default(),
            last: Mutex::new(0),
        }
    }

    /// Adds entries, their buckets first. Called twice: no change. Entries are hints: a failure has changed nothing.
    pub async fn add(
        &self,
        op: &'static str,
        places: impl IntoIterator<Item = ListPlace>,
    ) -> PortResult<()> {
        let places: Vec<ListPlace> = places.into_iter().collect();
        let buckets = self.unknown_buckets(&places);
        self.add_buckets(op, buckets).await?;
        self.rows.add_entries(op, &places, self.timestamp()).await
    }

    /// Reads entries until `limit` were found or there are no more.
    pub async fn read(&self, op: &'static str, span: &Span, limit: usize) -> PortResult<Entries> {
        let mut found = Entries::default();
        let (mut low, mut high) = span.buckets.clone();
        let mut at_once = 1;
        loop {
            let directory = self.directory(op, span, &low, &high).await?;
            let is_last = directory.len() < BUCKETS_PER_PAGE;
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
                    true => low = successor(&last.name),
                    false => high = last.name.clone(),
                },
                _ => break,
            }
        }
        // A full page may be all there is; then the next one is empty.
        found.is_all = found.entries.len() < limit;
        Ok(found)
    }

    /// Drops entries that lead elsewhere, if they are old enough. They are hints, and so is this: it does not fail.
    pub async fn drop_stale(&self, op: &'static str, entries: Vec<Entry>) {
        let limit = self.droppable();
        let old = entries.into_iter().filter(|entry| entry.added < limit);
        self.drop_entries(op, old.collect()).await.ok();
    }

    /// Drops entries of which it is known that nothing will come of them.
    pub async fn drop_entries(&self, op: &'static str, entries: Vec<Entry>) -> PortResult<()> {
        let drop = |entry: Entry| self.rows.drop_entry(op, entry);
        together(entries.into_iter().map(drop)).await?;
        Ok(())
    }

    async fn read_buckets(
        &self,
        op: &'static str,
        span: &Span,
        buckets: &[ListBucket],
        limit: usize,
        found: &mut Entries,
    ) -> PortResult<()> {
        let reads = buckets
            .iter()
            .map(|bucket| self.read_bucket(op, span, &bucket.name, limit));
        let read: Vec<Vec<Entry>> = together(reads).await?;
        let room = found.entries.len() + limit;
        for (bucket, entries) in buckets.iter().zip(read) {
            if entries.is_empty() && bucket.added < self.droppable() {
                self.drop_bucket(op, &span.list, bucket).await?;
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
        let query = EntryQuery {
            list: &span.list,
            bucket,
            low: &span.positions.0,
            high: &span.positions.1,
            is_rising: span.is_rising,
            limit,
        };
        self.rows.entries(op, query).await
    }

    async fn directory(
        &self,
        op: &'static str,
        span: &Span,
        low: &[u8],
        high: &[u8],
    ) -> PortResult<Vec<ListBucket>> {
        let query = BucketQuery {
            list: &span.list,
            from: low,
            before: high,
            is_rising: span.is_rising,
            limit: BUCKETS_PER_PAGE,
        };
        self.rows.buckets(op, query).await
    }

    /// Drops a bucket without any entry. A writer that adds to it meanwhile has written it to the directory at a later
    /// time.
    async fn drop_bucket(
        &self,
        op: &'static str,
        list: &str,
        bucket: &ListBucket,
    ) -> PortResult<()> {
        let query = EntryQuery {
            list,
            bucket: &bucket.name,
            low: &[],
            high: &[u8::MAX; POSITION_BYTES_MAX],
            is_rising: true,
            limit: 1,
        };
        if self.rows.entries(op, query).await?.is_empty() {
            self.rows.drop_bucket(op, list, bucket).await.ok();
        }
        Ok(())
    }

    fn unknown_buckets(&self, places: &[ListPlace]) -> Vec<(String, Vec<u8>)> {
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
        let began = Instant::now();
        self.rows
            .add_buckets(op, &buckets, self.timestamp())
            .await?;
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

/// The first name after this one.
#[must_use]
pub fn successor(bucket: &[u8]) -> Vec<u8> {
    [bucket, &[0]].concat()
}

/// Bytes in the order of the numbers.
#[must_use]
pub fn sortable(number: i64) -> [u8; 8] {
    (number ^ i64::MIN).to_be_bytes()
}

#[must_use]
pub fn of_sortable(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes) ^ i64::MIN
}
