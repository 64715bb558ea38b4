//! Tables of blocks of clicks: paging, ranking, merging and removing. What is in a block: [`curt_core::click_block`].
//!
//! A row per click with its indexes took ten times the room and time. An engine keeps a block as one value beside a few
//! numbers ([`BlockEntry`]) and knows nothing of what is in it. Which blocks may have clicks of a subject is told by a
//! filter beside each of them, so that a report on a link reads little else.

mod erase;
mod merge;
mod page;
mod purge;
mod rank;

use async_trait::async_trait;
use curt_core::click_block::NewBlock;
use curt_core::{ErrorKind, PortError, PortResult, UnixMillis};

use crate::varint::Damaged;

pub use erase::erase;
pub use merge::merge_small;
pub use page::read_page;
pub use purge::{purge, trim};
pub use rank::rank;

/// Blocks with fewer clicks are put together. The number stands in the index of each engine.
pub const SMALL_CLICKS: u32 = 4_096;

/// A table of blocks. Each call is one statement or transaction.
#[async_trait]
pub trait ClickBlocks: Send + Sync {
    /// The name of the engine, for errors.
    fn backend(&self) -> &'static str;

    /// Blocks whose newest click is not older than `range.from` and whose oldest is older than `range.before`, those with
    /// the newest click first and equal ones by falling id; behind `after`, and up to `limit`.
    async fn list(
        &self,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList>;

    /// Up to `limit` blocks, those with the oldest click first and equal ones by rising id.
    async fn list_oldest(&self, limit: usize) -> PortResult<Vec<BlockEntry>>;

    /// Up to `limit` blocks that have less than [`SMALL_CLICKS`] clicks and were not set aside, by falling id.
    async fn list_small(&self, limit: usize) -> PortResult<Vec<BlockEntry>>;

    /// The blocks that are still there, as they were written, with their ids.
    async fn read(&self, ids: &[i64]) -> PortResult<Vec<(i64, Vec<u8>)>>;

    /// What all blocks take together, in bytes.
    async fn sum_bytes(&self) -> PortResult<u64>;

    /// Puts `new` in the place of `old`, if all of those are still there, and says whether it did. Counts as a change of
    /// [`BlockList::version`]. Called twice: the second is refused. Timed out: unknown, and nothing is lost either way.
    async fn replace(&self, old: &[i64], new: Vec<NewBlock>) -> PortResult<bool>;

    /// Merges the block no more, and tells of it as damaged. Called twice: no change.
    async fn set_aside(&self, id: i64) -> PortResult<()>;
}

/// A part of time: `[from, before)`.
#[derive(Clone, Copy, Debug)]
pub struct BlockRange {
    pub from: UnixMillis,
    pub before: UnixMillis,
}

/// Where a block stands in [`ClickBlocks::list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockPlace {
    pub last_at: UnixMillis,
    pub id: i64,
}

impl BlockPlace {
    /// Before every block.
    pub const START: Self = Self {
        last_at: UnixMillis(i64::MAX),
        id: i64::MAX,
    };
}

#[derive(Clone, Debug)]
pub struct BlockList {
    pub blocks: Vec<BlockEntry>,
    /// Changes whenever clicks move from one block to another: lists of different versions do not fit together.
    pub version: i64,
}

/// What is known of a block without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    pub id: i64,
    pub first_at: UnixMillis,
    pub last_at: UnixMillis,
    pub clicks: u32,
    pub bytes: u32,
    /// A filter of the subjects that have clicks in it; left out by [`ClickBlocks::list_oldest`] and
    /// [`ClickBlocks::list_small`].
    pub subjects: Vec<u8>,
}

impl BlockEntry {
    fn rows(&self) -> usize {
        usize::try_from(self.clicks).unwrap_or(usize::MAX)
    }

    fn place(&self) -> BlockPlace {
        BlockPlace {
            last_at: self.last_at,
            id: self.id,
        }
    }
}

/// Lists the blocks of a range piece by piece.
struct BlockLister<'a> {
    blocks: &'a dyn ClickBlocks,
    range: BlockRange,
    after: BlockPlace,
    version: Option<i64>,
}

impl<'a> BlockLister<'a> {
    fn new(blocks: &'a dyn ClickBlocks, range: BlockRange) -> Self {
        Self {
            blocks,
            range,
            after: BlockPlace::START,
            version: None,
        }
    }

    /// The next blocks; none at the end. `None`: clicks were moved since the first piece, and some may be missed or met
    /// twice.
    async fn next(&mut self, limit: usize) -> PortResult<Option<Vec<BlockEntry>>> {
        let listed = self.blocks.list(self.range, self.after, limit).await?;
        if *self.version.get_or_insert(listed.version) != listed.version {
            return Ok(None);
        }
        self.after = listed.blocks.last().map_or(self.after, BlockEntry::place);
        Ok(Some(listed.blocks))
    }
}

/// How often clicks may move from block to block while they are read.
const RESTARTS_MAX: usize = 10;

fn moved_too_often(blocks: &dyn ClickBlocks, op: &'static str) -> PortError {
    let detail = "clicks are being moved; try again";
    PortError::new(ErrorKind::Unavailable, blocks.backend(), op, detail)
}

fn damaged_block(backend: &'static str, op: &'static str, id: i64, source: Damaged) -> PortError {
    let detail = format!("block {id} of clicks is damaged");
    PortError::new(ErrorKind::Corrupt, backend, op, detail).with_source(source)
}

#[cfg(test)]
mod tests;
