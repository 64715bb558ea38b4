//! What was counted, as people ask for it: totals, series, the most frequent values, and clicks one by one.
//!
//! Everything is put together from the hours that the store keeps, so a report costs the same however many clicks it
//! is about. Only rankings with filters ([`ranking`]) look at single clicks, and at so many at most.

mod calendar;
pub mod csv;
mod fresh;
mod link_clicks;
mod range;
mod ranking;
mod series;

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{ClickPage, ClickQuery, ClickReports, HourRange, Top};
use curt_core::{ClickSubject, Dimension, PortError, PortResult, UnixMillis};

pub use calendar::{ReportPeriod, Zone};
pub use fresh::{FreshReports, ReportLag};
pub use link_clicks::CountedLink;
pub use range::{Edge, Range, ReportRangeError, USUAL_DAYS};
pub use ranking::{RankingQuery, RankingReport};
pub use series::{Counts, Point};

use calendar::Calendar;
use link_clicks::OlderClicks;

/// Reads reports. Who may see which subject is the caller's to decide.
pub struct Reports {
    store: Arc<dyn ClickReports>,
    clicks_kept: Option<Duration>,
    lag: ReportLag,
    /// Settings that name no file, by the dimension that needs it.
    missing_files: Vec<(Dimension, &'static str)>,
    older: OlderClicks,
}

/// A subject's numbers over a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub totals: Counts,
    /// About how many different humans came: the sum of each UTC day's, since nobody is recognised on the next day.
    /// Days count whole.
    pub visitors: u64,
    /// One point per bucket that the range touches, those without clicks included. They add up to the totals.
    pub points: Vec<Point>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Range(#[from] ReportRangeError),
    #[error("This server keeps no single clicks, so there are no numbers about some of them.")]
    NoClicks,
    #[error(transparent)]
    Store(#[from] PortError),
}

impl Reports {
    /// `clicks_kept` is how long single clicks are, or `None` for ever.
    #[must_use]
    pub fn new(store: Arc<dyn ClickReports>, clicks_kept: Option<Duration>) -> Self {
        Self {
            store,
            clicks_kept,
            lag: ReportLag::default(),
            missing_files: Vec::new(),
            older: OlderClicks::default(),
        }
    }

    /// Tells how far what is read is behind.
    #[must_use]
    pub fn with_lag(self, lag: ReportLag) -> Self {
        Self { lag, ..self }
    }

    /// How long ago a click may have been made that is not counted yet.
    #[must_use]
    pub fn lag_max(&self, now: UnixMillis) -> Duration {
        self.lag.max(now)
    }

    /// Says which dimensions have no values because a setting names no file.
    #[must_use]
    pub fn lacking(mut self, missing: impl IntoIterator<Item = (Dimension, &'static str)>) -> Self {
        self.missing_files.extend(missing);
        self
    }

    /// The setting that would have to name a file for the dimension to have values.
    #[must_use]
    pub fn missing_setting(&self, dimension: Dimension) -> Option<&'static str> {
        let mut missing = self.missing_files.iter();
        let missing = missing.find(|(lacks, _)| *lacks == dimension);
        missing.map(|(_, setting)| *setting)
    }

    /// Totals, and the series in buckets of the zone's calendar.
    pub async fn summary(
        &self,
        subject: &ClickSubject,
        range: &Range,
        zone: &Zone,
        bucket: ReportPeriod,
    ) -> Result<Summary, ReportError> {
        let (summary, _) = self
            .summary_and_tops(subject, range, zone, bucket, &[])
            .await?;
        Ok(summary)
    }

    /// As [`summary`](Self::summary), and the most frequent values of several dimensions, each with its limit, in order.
    pub async fn summary_and_tops(
        &self,
        subject: &ClickSubject,
        range: &Range,
        zone: &Zone,
        bucket: ReportPeriod,
        dimensions: &[(Dimension, usize)],
    ) -> Result<(Summary, Vec<Top>), ReportError> {
        let calendar = Calendar::new(range, zone, bucket)?;
        let mut points = calendar.points();
        let reading = self.store.overview(subject, dimensions, range.counted());
        let overview = reading.await?;
        series::count(&mut points, &overview.series);
        if bucket != ReportPeriod::Hour {
            series::place_visitors(&mut points, &overview.visitors);
        }
        let summary = Summary {
            totals: Counts::sum(points.iter().map(|point| point.counts)),
            visitors: overview.visitors.iter().map(|(_, count)| count).sum(),
            points,
        };
        Ok((summary, overview.tops))
    }

    /// The most frequent values of a dimension, as of `now`.
    pub async fn top(
        &self,
        ranking: &RankingQuery<'_>,
        now: UnixMillis,
    ) -> Result<RankingReport, ReportError> {
        if !ranking.needs_clicks() {
            return Ok(ranking.rank_rollups(&*self.store).await?);
        }
        let kept_from = match self.clicks_kept {
            None => UnixMillis(i64::MIN),
            Some(Duration::ZERO) => return Err(ReportError::NoClicks),
            Some(kept) => now.minus(kept),
        };
        Ok(ranking.rank_clicks(&*self.store, kept_from).await?)
    }

    /// How many clicks of each class.
    pub async fn totals(&self, subject: &ClickSubject, hours: HourRange) -> PortResult<Counts> {
        let top = self.store.top(subject, Dimension::Class, hours, usize::MAX);
        Ok(Counts::of_kinds(&top.await?))
    }

    pub async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        self.store.clicks(query).await
    }
}

#[cfg(test)]
mod tests;
