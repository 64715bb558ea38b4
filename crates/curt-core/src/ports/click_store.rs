use async_trait::async_trait;

use crate::click::{Click, ClickClass, ClickSubject, ClickSum, Day, Dimension, SubjectDay};
use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::ports::StreamPartition;

/// Durable sums of clicks, sketches of visitors, and clicks.
///
/// It knows nothing of links: who owned a link and which tags it had comes with each flush, and stays as it was then.
/// A link is told apart from earlier links of its key by its generation, whatever the clocks did.
#[async_trait]
pub trait ClickStore: Send + Sync {
    /// The stream position that is durably applied for the partition. Absent: 0.
    async fn position(&self, partition: StreamPartition) -> PortResult<u64>;

    /// Adds the flush's sums, visitors and clicks and moves the partition's position from `from` to `to`, all in one
    /// transaction, if the position still is `from`; says whether it did (C-1).
    ///
    /// - *Called twice*: the second is refused and adds nothing.
    /// - *Timed out*: unknown; calling again with the same flush is safe, and `position` tells what happened.
    /// - *Too many values*: a dimension of a subject keeps the
    ///   [`VALUES_PER_DAY_MAX`](crate::limits::VALUES_PER_DAY_MAX) most frequent values of a day; counts of others are
    ///   added to [`OTHER`](crate::click::OTHER), which comes on top. The sum over all values stays exact. A value that
    ///   has more than a thousandth of the day's counts is kept, and what is told of it may lack as much at most.
    /// - *Damaged*: where a stored row cannot be read, its counts go to the dead letters, everything else is added, and
    ///   [`damage`](Self::damage) says so.
    /// - *Out of range*: a sum whose hour is not of its day is counted in the day's nearest hour, and a click before 1970
    ///   or after year 9999 is kept at the nearest instant.
    async fn apply(&self, flush: ClickFlush) -> PortResult<bool>;

    /// The sums of a subject in one dimension, by hour and then value. Hours without any are left out.
    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<ClickSum>>;

    /// The `limit` values of a dimension with the highest counts over the range, highest first and equal ones by value,
    /// and how much all others have together. With [`Dimension::Class`] this is the total.
    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top>;

    /// About how many different humans came on each day of `[from, before)`; days without any are left out. The salt of
    /// their hashes changes daily, so one who comes on two days is two.
    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>>;

    /// One page of clicks, newest first. Reads at most
    /// [`PAGE_ROWS_SCANNED_MAX`](crate::limits::PAGE_ROWS_SCANNED_MAX) rows: a page may be short, even empty, and still
    /// have a `next`. A cursor from another engine is `Invalid`.
    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage>;

    /// The salt of the day; where there is none yet, `fresh` becomes it, durably. Called twice or by two at once: all
    /// get the same. Timed out: unknown; call again.
    async fn salt(&self, day: Day, fresh: Salt) -> PortResult<Salt>;

    /// Removes the salts of days before `before`: who came on them cannot be found out any more. Called twice: no change.
    async fn forget_salts(&self, before: Day) -> PortResult<()>;

    /// Removes up to `limit` clicks that are older than `before`, oldest first, and says how many. Sums stay.
    async fn purge_clicks(&self, before: UnixMillis, limit: usize) -> PortResult<u64>;

    /// Removes up to `limit` clicks, oldest first, while all of them take more than `bytes_max`, and says how many. What
    /// they take is estimated from the length of their texts. Sums stay, and the room is used again.
    async fn trim_clicks(&self, bytes_max: u64, limit: usize) -> PortResult<u64>;

    /// Bytes that can still be written before the store's disk is full, without those that it has promised already;
    /// `None` where this process cannot tell, as for an engine that runs elsewhere.
    async fn room(&self) -> PortResult<Option<u64>> {
        Ok(None)
    }

    /// Gives back room on the disk that is held without need, such as that of a write-ahead log.
    async fn checkpoint(&self) -> PortResult<()> {
        Ok(())
    }

    /// What was set aside or lost because stored rows are damaged, since the database was made; `None`: nothing was.
    async fn damage(&self) -> PortResult<Option<ClickDamage>> {
        Ok(None)
    }

    /// Removes up to `limit` days of subjects, sums and visitors alike, that are before `before`, and says how many.
    async fn purge_sums(&self, before: Day, limit: usize) -> PortResult<u64>;
}

/// What damage to the stored rows cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClickDamage {
    /// When it was met first.
    pub since: UnixMillis,
    /// Days of subjects that are among the dead letters.
    pub days: u64,
    /// Single clicks that could not be kept. Their counts are not affected.
    pub clicks: u64,
}

/// 32 random bytes.
pub type Salt = [u8; 32];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickFlush {
    pub partition: StreamPartition,
    pub from: u64,
    pub to: u64,
    /// A subject's day may come more than once.
    pub days: Vec<SubjectDay>,
    pub clicks: Vec<Click>,
}

/// Whole hours from the one that `from` lies in to the one before that of `before`: `[from, before)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourRange {
    pub from: UnixMillis,
    pub before: UnixMillis,
}

impl HourRange {
    pub const ALL: Self = Self {
        from: UnixMillis(i64::MIN),
        before: UnixMillis(i64::MAX),
    };

    #[must_use]
    pub fn contains(self, hour: UnixMillis) -> bool {
        self.from.hour() <= hour && hour < self.before.hour()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Top {
    pub values: Vec<(Box<str>, u64)>,
    /// The count of all values that are not listed.
    pub rest: u64,
}

impl Top {
    /// Ranks the counts, which name each value once.
    #[must_use]
    pub fn of(counts: impl IntoIterator<Item = (Box<str>, u64)>, limit: usize) -> Self {
        let mut values: Vec<(Box<str>, u64)> = counts.into_iter().collect();
        values.sort_unstable_by(|(value, count), (other, than)| {
            than.cmp(count).then_with(|| value.cmp(other))
        });
        let beyond = values.split_off(limit.min(values.len()));
        let rest = beyond
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        Self { values, rest }
    }

    /// The count of all values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.values
            .iter()
            .fold(self.rest, |sum, (_, count)| sum.saturating_add(*count))
    }
}

#[derive(Clone, Debug)]
pub struct ClickQuery {
    pub subject: ClickSubject,
    pub from: UnixMillis,
    pub before: UnixMillis,
    pub filter: ClickFilter,
    /// Opaque position from the page before.
    pub cursor: Option<Box<str>>,
    pub limit: usize,
}

/// Clicks that have each of the named values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClickFilter {
    pub class: Option<ClickClass>,
    pub values: Vec<(Dimension, Box<str>)>,
}

impl ClickFilter {
    #[must_use]
    pub fn takes(&self, click: &Click) -> bool {
        let has = |(dimension, value): &(Dimension, Box<str>)| {
            click.value(*dimension).is_some_and(|own| *own == **value)
        };
        self.class.is_none_or(|class| click.class == class) && self.values.iter().all(has)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClickPage {
    pub clicks: Vec<Click>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<Box<str>>,
}
