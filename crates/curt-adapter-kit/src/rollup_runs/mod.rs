//! What was counted, as engines store it: sorted runs, as in a log-structured merge tree.
//!
//! A window adds one run for each day that it counted: the days of its subjects, sorted by subject, in compressed chunks.
//! Nothing that is stored is read or locked for that, so many processes may add at once, and a damaged page costs what
//! is on it. A report finds its subject in every run of the days that it is about, and adds up; so that there are few of
//! them, runs of about the same size are merged ([`merge_small`]). An engine keeps a chunk as one value beside its first
//! key, and knows nothing of what is in it.

mod chunk;
mod erase;
mod merge;
mod read;
mod subject_key;
mod write;

use async_trait::async_trait;
use curt_core::{Day, PortResult};

pub use chunk::first_key_of;
pub use erase::erase;
pub use merge::merge_small;
pub use read::{read_overview, read_series, read_top, read_visitors};
pub use write::encode;

/// What a run may take, so that one is merged or removed in one transaction: a busy day has several such runs.
const RUN_BYTES_MAX: u64 = 16 * 1_024 * 1_024;
/// Runs that take less are merged. The number stands in the index of each engine.
pub const SMALL_BYTES: u64 = RUN_BYTES_MAX / 2;

/// A table of runs and one of their chunks. Each call is one statement or transaction.
#[async_trait]
pub trait RollupRuns: Send + Sync {
    /// The name of the engine, for errors.
    fn backend(&self) -> &'static str;

    /// Of every run of the first `limit` days that have any, from `first` to `last`, both included: the last chunk whose
    /// first key is not greater than `key`; by day. What it finds of a day is of one moment.
    async fn find(
        &self,
        key: &[u8],
        first: Day,
        last: Day,
        limit: usize,
    ) -> PortResult<Vec<FoundChunk>>;

    /// Up to `limit` runs that take less than [`SMALL_BYTES`] and were not set aside, by falling id.
    async fn list_small(&self, limit: usize) -> PortResult<Vec<RunEntry>>;

    /// The chunks of a run by their first key; none where it is gone.
    async fn read(&self, id: i64) -> PortResult<Vec<Vec<u8>>>;

    /// Puts `new` in the place of `old`, if all of those are still there and as they were listed, and says whether it did.
    /// Called twice: the second is refused. Timed out: unknown, and nothing is lost either way.
    async fn replace(&self, old: &[RunEntry], new: NewRun) -> PortResult<bool>;

    /// Takes one subject out of a chunk, if its run is still there and as it was found, and says whether it did. Called
    /// twice: the second is refused. Timed out: unknown.
    async fn edit_chunk(&self, edit: ChunkEdit) -> PortResult<bool>;

    /// Merges the run no more, and tells of it as damaged. Called twice: no change.
    async fn set_aside(&self, id: i64) -> PortResult<()>;
}

#[derive(Clone, Debug)]
pub struct FoundChunk {
    pub day: Day,
    pub run: i64,
    /// How often chunks of the run were edited.
    pub edits: i64,
    /// `None`: the run has no such chunk.
    pub content: Option<Vec<u8>>,
}

/// What is known of a run without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEntry {
    pub id: i64,
    pub day: Day,
    pub bytes: u64,
    /// How often its chunks were edited.
    pub edits: i64,
}

/// A chunk that is to have one subject less.
#[derive(Clone, Debug)]
pub struct ChunkEdit {
    pub run: i64,
    /// Of the run when the chunk was found.
    pub edits: i64,
    /// Of the chunk as it was.
    pub first_key: Vec<u8>,
    pub bytes_before: u64,
    /// `None`: nothing is left of it.
    pub rest: Option<NewChunk>,
}

impl ChunkEdit {
    /// How many bytes more the run takes.
    #[must_use]
    pub fn bytes_added(&self) -> i64 {
        let after = self.rest.as_ref().map_or(0, NewChunk::bytes);
        after.cast_signed() - self.bytes_before.cast_signed()
    }
}

/// A run that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    pub day: Day,
    /// Subjects that were counted.
    pub subjects: u32,
    pub chunks: Vec<NewChunk>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewChunk {
    pub first_key: Vec<u8>,
    pub content: Vec<u8>,
}

impl NewRun {
    /// What its chunks take, without the engine's own.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(NewChunk::bytes).sum()
    }
}

impl NewChunk {
    fn bytes(&self) -> u64 {
        (self.first_key.len() + self.content.len()) as u64
    }
}

#[cfg(test)]
mod tests;
