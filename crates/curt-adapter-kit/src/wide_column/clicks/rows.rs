//! What an engine keeps of clicks.

use std::collections::BTreeMap;

use async_trait::async_trait;
use curt_core::ports::{Salt, StreamPartition};
use curt_core::{Clock, Day, PortResult, SystemClock, UnixMillis};

use super::manifest::{BlockRow, RunRow};
use crate::click_blocks::BlockPlace;
use crate::wide_column::{Decided, Mark, ReadMode, ScanPart};

/// Up to where each partition of each stream is counted.
#[async_trait]
pub trait OffsetRows: Send + Sync {
    /// As it was decided.
    async fn get_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
    ) -> PortResult<Option<StoredOffset>>;

    /// Moves an offset from `from` and stores a manifest, if there is none. `from` of `None`: if there is no offset yet.
    async fn move_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
        from: Option<u64>,
        next: &StoredOffset,
    ) -> PortResult<Decided>;

    /// Removes the manifest, if the offset was moved by the call with this mark.
    async fn finish_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Some partitions behind `after` that have an offset.
    async fn scan_offsets(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<StreamPartition>>;
}

/// Values that are written once, under ids of their own.
#[async_trait]
pub trait ContentRows: Send + Sync {
    async fn put_contents(&self, op: &'static str, contents: Vec<Content<'_>>) -> PortResult<()>;

    async fn get_content(&self, op: &'static str, id: i64) -> PortResult<Option<Vec<u8>>>;

    async fn get_subjects(&self, op: &'static str, id: i64) -> PortResult<Option<Vec<u8>>>;

    /// The day of a run.
    async fn get_day(&self, op: &'static str, run: i64) -> PortResult<Option<i32>>;

    async fn delete_content(&self, op: &'static str, id: i64) -> PortResult<()>;
}

/// Catalogues of runs of counts, one for each day. A run that was removed is marked, so that it does not come back.
#[async_trait]
pub trait RunRows: Send + Sync {
    /// How many runs or blocks can be replaced at once.
    fn replaced_max(&self) -> usize {
        usize::MAX
    }

    /// The runs of a day that are there, of one moment.
    async fn get_runs(
        &self,
        op: &'static str,
        day: i32,
        mode: ReadMode,
    ) -> PortResult<BTreeMap<i64, CataloguedRun>>;

    /// Enters a run in the place of others, given by their ids and how often they were edited: if it never was there,
    /// and all of those are.
    async fn insert_run(
        &self,
        op: &'static str,
        run: &RunRow,
        replaced: &[(i64, i64)],
    ) -> PortResult<Decided>;

    /// Changes a run from `before` to `after`, if it is there and was not edited since.
    async fn edit_run(
        &self,
        op: &'static str,
        day: i32,
        id: i64,
        before: &CataloguedRun,
        after: &CataloguedRun,
    ) -> PortResult<Decided>;

    /// Removes a run, if it is there and was edited so often.
    async fn remove_run(
        &self,
        op: &'static str,
        day: i32,
        id: i64,
        edits: i64,
    ) -> PortResult<Decided>;
}

/// The catalogue of blocks of single clicks. A block that was removed is marked, so that it does not come back.
#[async_trait]
pub trait ClickBlockRows: Send + Sync {
    /// Rows behind `after`, by falling time of the last click and falling id, up to clicks of `from`; and how often blocks
    /// were replaced, of one moment.
    async fn list_rows(
        &self,
        op: &'static str,
        after: BlockPlace,
        from: UnixMillis,
        limit: usize,
    ) -> PortResult<(i64, Vec<StoredBlock>)>;

    async fn get_row(&self, op: &'static str, place: BlockPlace)
    -> PortResult<Option<StoredBlock>>;

    /// What all blocks take together, in bytes.
    async fn sum_block_bytes(&self, op: &'static str) -> PortResult<u64>;

    /// Enters a block that never was there.
    async fn insert_block(&self, op: &'static str, block: &BlockRow) -> PortResult<Decided>;

    /// Puts `new` in the place of `old`, if all of these are there and blocks were replaced `moves` times.
    async fn replace_blocks(
        &self,
        op: &'static str,
        moves: i64,
        old: &[BlockRow],
        new: &[BlockRow],
    ) -> PortResult<Decided>;
}

/// Salts of days.
#[async_trait]
pub trait SaltRows: Send + Sync {
    async fn get_salt(
        &self,
        op: &'static str,
        day: Day,
        mode: ReadMode,
    ) -> PortResult<Option<Salt>>;

    /// Stores a salt, if the day has none.
    async fn insert_salt(&self, op: &'static str, day: Day, salt: &Salt) -> PortResult<Decided>;

    async fn delete_salt(&self, op: &'static str, day: Day) -> PortResult<Decided>;
}

/// What cannot be read.
#[async_trait]
pub trait DamageRows: Send + Sync {
    /// Ids, with when that was found.
    async fn get_damage(
        &self,
        op: &'static str,
        kind: DamagedKind,
    ) -> PortResult<Vec<(i64, UnixMillis)>>;

    async fn put_damage(
        &self,
        op: &'static str,
        kind: DamagedKind,
        id: i64,
        at: UnixMillis,
    ) -> PortResult<()>;
}

/// The number of each is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedKind {
    Run = 0,
    Block = 1,
}

/// An offset as a row says.
#[derive(Clone, Debug)]
pub struct StoredOffset {
    pub offset: u64,
    /// The call that moved it.
    pub mark: Mark,
    /// What that call counted, until it is in the catalogues.
    pub manifest: Option<String>,
}

/// A value to be written.
#[derive(Clone, Debug, Default)]
pub struct Content<'a> {
    pub id: i64,
    /// Of a run: where its catalogue is.
    pub day: Option<i32>,
    pub content: Option<&'a [u8]>,
    pub subjects: Option<&'a [u8]>,
}

/// A run that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CataloguedRun {
    pub bytes: i64,
    pub subjects: i64,
    pub edits: i64,
    /// Contents by first key.
    pub chunks: BTreeMap<Vec<u8>, i64>,
}

/// A block as a row says.
#[derive(Clone, Debug)]
pub struct StoredBlock {
    pub row: BlockRow,
    /// Whether it was removed.
    pub is_gone: bool,
}

/// An id that grows with time and that no other process makes: microseconds, and some luck.
pub(super) fn new_id() -> i64 {
    const RANDOM_BITS: u32 = 10;
    let micros = SystemClock.now().0.saturating_mul(1_000);
    let within = rand::random_range(0..1_000_i64);
    let luck = i64::from(rand::random_range(0..1_u32 << RANDOM_BITS));
    ((micros + within) << RANDOM_BITS) | luck
}
