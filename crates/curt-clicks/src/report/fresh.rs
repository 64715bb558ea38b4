//! Reports on the clicks of a moment ago.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ClickOverview, ClickPage, ClickQuery, ClickRanking, ClickReports, HourRange, Top,
};
use curt_core::{ClickSubject, Day, Dimension, PortResult, Rollup, UnixMillis};

use crate::consume::{CountingState, FlushRequests, RemoteFreshness};

/// Has the consumers write what they have aggregated, and then reads: those of this process, or of all where processes share
/// a stream. Other processes write theirs when their windows end.
pub struct FreshReports {
    store: Arc<dyn ClickReports>,
    requests: FlushRequests,
}

impl FreshReports {
    #[must_use]
    pub fn new(store: Arc<dyn ClickReports>, requests: FlushRequests) -> Self {
        Self { store, requests }
    }
}

#[async_trait]
impl ClickReports for FreshReports {
    async fn series(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
    ) -> PortResult<Vec<Rollup>> {
        self.requests.flush().await;
        self.store.series(subject, dimension, range).await
    }

    async fn top(
        &self,
        subject: &ClickSubject,
        dimension: Dimension,
        range: HourRange,
        limit: usize,
    ) -> PortResult<Top> {
        self.requests.flush().await;
        self.store.top(subject, dimension, range, limit).await
    }

    async fn overview(
        &self,
        subject: &ClickSubject,
        dimensions: &[(Dimension, usize)],
        range: HourRange,
    ) -> PortResult<ClickOverview> {
        self.requests.flush().await;
        self.store.overview(subject, dimensions, range).await
    }

    async fn visitors(
        &self,
        subject: &ClickSubject,
        from: Day,
        before: Day,
    ) -> PortResult<Vec<(Day, u64)>> {
        self.requests.flush().await;
        self.store.visitors(subject, from, before).await
    }

    async fn clicks(&self, query: &ClickQuery) -> PortResult<ClickPage> {
        // Pages after the first have older clicks.
        if query.cursor.is_none() {
            self.requests.flush().await;
        }
        self.store.clicks(query).await
    }

    async fn rank_clicks(&self, ranking: &ClickRanking) -> PortResult<Top> {
        self.requests.flush().await;
        self.store.rank_clicks(ranking).await
    }
}

/// How far reports are behind redirects.
#[derive(Clone, Debug, Default)]
pub struct ReportLag {
    /// The consumers of this process; `None`: it has none.
    pub own: Option<CountingState>,
    /// How long other processes aggregate before they write; `None`: there are none that count into this store.
    pub others: Option<Duration>,
    /// Where other processes write when they are asked.
    pub freshness: Option<RemoteFreshness>,
}

impl ReportLag {
    /// Clicks that are older are counted, as long as other processes keep up.
    pub(super) fn max(&self, now: UnixMillis) -> Duration {
        let own = self.own.as_ref().map(|counting| counting.lag(now));
        let is_fresh = self
            .freshness
            .as_ref()
            .is_some_and(RemoteFreshness::is_fresh);
        let others = self.others.filter(|_| !is_fresh);
        own.unwrap_or_default()
            .max(others.unwrap_or_default())
            .max(FlushRequests::EVERY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_that_of_whoever_is_further_behind() {
        let now = UnixMillis(1_000_000);
        let mut lag = ReportLag::default();
        assert_eq!(lag.max(now), Duration::from_secs(1));
        let counting = CountingState::default();
        lag.own = Some(counting.clone());
        assert_eq!(lag.max(now), Duration::from_secs(1));
        counting.note_read(0, Some(UnixMillis(990_000)), now);
        assert_eq!(lag.max(now), Duration::from_secs(10));
        lag.others = Some(Duration::from_secs(120));
        assert_eq!(lag.max(now), Duration::from_secs(120));
    }
}
