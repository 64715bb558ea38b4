use std::sync::Arc;

use async_trait::async_trait;

use crate::click::{Click, Day, SubjectDay};
use crate::click_block::{NewBlock, encode};
use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::LinkId;
use crate::ports::{ClickReports, StreamPartition};

/// The write side of a clicks database: rollups, sketches of visitors, and single clicks. [`ClickReports`] reads them.
///
/// It knows nothing of links: who owned a link and which tags it had comes with each flush, and stays as it was then.
/// A link is told apart from earlier links of its key by its generation, whatever the clocks did.
#[async_trait]
pub trait ClickStore: Send + Sync {
    /// The offset up to which the partition is durably counted. Absent: 0.
    async fn offset(&self, partition: StreamPartition) -> PortResult<u64>;

    /// Adds the flush's rollups, visitors and clicks and moves the partition's offset from `from` to `to`, all in one
    /// transaction, if the offset still is `from`; says whether it did (C-1).
    ///
    /// - *Called twice*: the second is refused and adds nothing.
    /// - *Timed out*: unknown; calling again with the same flush is safe, and [`offset`](Self::offset) tells what happened.
    /// - *Too many values*: a dimension of a subject keeps the
    ///   [`VALUES_PER_DAY_MAX`](crate::limits::VALUES_PER_DAY_MAX) most frequent values of a day; counts of others are
    ///   added to [`OTHER`](crate::click::OTHER), which comes on top. The sum over all values stays exact. A value that
    ///   has more than a thousandth of the day's counts is kept, and what is told of it may lack as much at most.
    /// - *Damaged*: what is stored is not read for it; [`damage`](Self::damage) tells what cannot be read any more.
    /// - *Out of range*: a sum whose hour is not of its day is counted in the day's nearest hour, and a click before 1970
    ///   or after year 9999 is kept at the nearest instant.
    async fn apply(&self, flush: ClickWindow) -> PortResult<bool>;

    /// The salt of the day; where there is none yet, `fresh` becomes it, durably. Called twice or by two at once: all
    /// get the same. Timed out: unknown; call again.
    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt>;

    /// Removes the salts of days before `before`: who came on them cannot be found out any more. Called twice: no change.
    async fn forget_salts(&self, before: Day) -> PortResult<()>;

    /// Removes up to `limit` clicks that are older than `before`, and says how many: those of the oldest blocks first, and
    /// of one block the oldest. Rollups stay.
    async fn purge_clicks(&self, before: UnixMillis, limit: usize) -> PortResult<u64>;

    /// Removes up to `limit` clicks, in the same order, while all of them take more than `bytes_max`, and says how many.
    /// Rollups stay, and the room is used again.
    async fn trim_clicks(&self, bytes_max: u64, limit: usize) -> PortResult<u64>;

    /// Puts together what many small windows brought, where that saves room and time. Changes no report, not even one that
    /// is being read page by page. Called twice, or by two at once: no change.
    async fn compact(&self) -> PortResult<()> {
        Ok(())
    }

    /// Bytes that can still be written before the store's disk is full, without those that it has promised already;
    /// `None` where this process cannot tell, as for an engine that runs elsewhere.
    async fn free_bytes(&self) -> PortResult<Option<u64>> {
        Ok(None)
    }

    /// Gives back room on the disk that is held without need, such as that of a write-ahead log.
    async fn checkpoint(&self) -> PortResult<()> {
        Ok(())
    }

    /// What could not be read when it was to be put together, since the database was made; `None`: nothing was.
    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        Ok(None)
    }

    /// Removes days of subjects, rollups and visitors alike, that are before `before`, the oldest first, and says how many:
    /// about `limit`, and as many more as are stored together. One that several windows counted may count more than once.
    async fn purge_rollups(&self, before: Day, limit: usize) -> PortResult<u64>;

    /// Removes the single clicks of one generation of a link, from every list that has them, and says how many. Other clicks
    /// keep their order, also for pages that are being read; rollups stay.
    ///
    /// - *Bounded*: changes at most `pieces_max` of the pieces in which clicks are stored, in several transactions; what is
    ///   left then is told by [`Erasure::is_complete`], and the next call goes on.
    /// - *Absent*: nothing to remove, and complete.
    /// - *Called twice*, or by two at once: each tells of what it has removed itself.
    /// - *Timed out*: some clicks may be gone, others not; calling again goes on.
    /// - *Applied meanwhile*: the clicks of a flush that is applied during the call may stay.
    /// - *Damaged*: `Corrupt`, after everything that can be read is gone.
    async fn erase_clicks(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure>;

    /// Removes the days of one generation of a link, rollups and visitors alike, and says how many; one that several
    /// windows counted may count more than once. What its clicks added to its owner, its tags and everything stays.
    /// Otherwise as [`erase_clicks`](Self::erase_clicks).
    async fn erase_rollups(
        &self,
        link: LinkId,
        generation: u32,
        pieces_max: usize,
    ) -> PortResult<Erasure>;
}

/// What was removed on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    /// Clicks, or days.
    pub erased: u64,
    /// Whether nothing is left of what was stored when the call began.
    pub is_complete: bool,
}

/// A database that serves both sides.
pub trait ClickDatabase: ClickStore + ClickReports {}

impl<T: ClickStore + ClickReports> ClickDatabase for T {}

/// Pieces of a clicks database that cannot be read. They stay where they are, and reports that need them fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClickDamage {
    /// When the first was met.
    pub since: UnixMillis,
    /// Of counts.
    pub runs: u64,
    /// Of single clicks.
    pub blocks: u64,
}

/// 32 random bytes.
pub type Salt = [u8; 32];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickWindow {
    pub partition: StreamPartition,
    pub from: u64,
    pub to: u64,
    /// A subject's day may come more than once. Shared, because a window is given to the store again after a failure.
    pub days: Arc<Vec<SubjectDay>>,
    /// Single clicks in the order in which they came, as they are stored.
    pub blocks: Vec<NewBlock>,
}

impl ClickWindow {
    /// The same window with these clicks.
    #[must_use]
    pub fn with_clicks(self, clicks: &[Click]) -> Self {
        Self {
            blocks: encode(self.partition, self.from, clicks),
            ..self
        }
    }

    /// How many single clicks it has.
    #[must_use]
    pub fn clicks(&self) -> usize {
        let clicks = self.blocks.iter().map(|block| block.clicks as usize);
        clicks.sum()
    }
}
