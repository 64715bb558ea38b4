use std::time::Duration;

use async_trait::async_trait;

use crate::click::{Click, ClickClass, ClickSubject, Day, Dimension, Rollup};
use crate::clock::UnixMillis;
use crate::error::PortResult;

/// The read side of a clicks database. What [`ClickStore`](super::ClickStore) has applied is seen by the next call; a
/// subject that is absent has nothing, and calls may be repeated.
#[async_trait]
pub trait ClickReports: Send + Sync {
    /// The rollups of a subject in one dimension, by hour and then value. Hours without any are left out.
    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<Rollup>>;

    /// The `limit` values of a dimension with the highest counts over the range, highest first and equal ones by value,
    /// and how much all others have together. With [`Dimension::Class`] this is the total.
    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top>;

    /// What a page about the subject shows together: an engine may read what it is about once. Each dimension has its
    /// limit.
    async fn overview(
        &self,
        subject: &ClickSubject,
        dimensions: &[(Dimension, usize)],
        range: HourRange,
    ) -> PortResult<ClickOverview> {
        let mut overview = ClickOverview {
            series: self.series(subject, Dimension::Class, range).await?,
            ..ClickOverview::default()
        };
        if let Some((from, before)) = range.days() {
            overview.visitors = self.visitors(subject, from, before).await?;
        }
        for (dimension, limit) in dimensions {
            let top = self.top(subject, *dimension, range, *limit).await?;
            overview.tops.push(top);
        }
        Ok(overview)
    }

    /// About how many different humans came on each day of `[from, before)`; days without any are left out. The salt of
    /// their hashes changes daily, so one who comes on two days is two.
    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>>;

    /// One page of clicks, newest first; of one instant those whose window began later in its partition, and of one
    /// window the later. What a call reads is bounded: a page may be short, even empty, and still have a `next`. A cursor
    /// from another engine is `Invalid`.
    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage>;

    /// The most frequent values among the clicks that are kept and asked for, as [`top`](Self::top) has them for all. Reads
    /// as many as there are. Where they have more than [`VALUES_RANKED_MAX`](crate::limits::VALUES_RANKED_MAX) different
    /// values, those that are met later count as [`OTHER`](crate::click::OTHER); the sum stays exact.
    async fn rank_clicks(&self, ranking: &ClickRanking) -> PortResult<Top>;
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

    /// The days that have one of its hours: from the first to the one before the second; `None`: there are none.
    #[must_use]
    pub fn days(self) -> Option<(Day, Day)> {
        let end = self.before.hour();
        let last = Day::of(end.minus(Duration::from_millis(1)));
        (self.from.hour() < end).then(|| (Day::of(self.from), last.next()))
    }
}

/// What is known of a subject over a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClickOverview {
    /// As [`ClickReports::series`] by class.
    pub series: Vec<Rollup>,
    /// As [`ClickReports::visitors`] on [`HourRange::days`].
    pub visitors: Vec<(Day, u64)>,
    /// As [`ClickReports::top`] by each of the dimensions, in order.
    pub tops: Vec<Top>,
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

#[derive(Clone, Debug)]
pub struct ClickRanking {
    pub subject: ClickSubject,
    pub from: UnixMillis,
    pub before: UnixMillis,
    pub filter: ClickFilter,
    pub dimension: Dimension,
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
