//! The most frequent values of a dimension, of all clicks or of those that have other values in common, such as the
//! browsers of one country.
//!
//! Rollups know one dimension each, and rollups of every pair would make a click three times as dear to count. So a ranking
//! with filters is read from single clicks, as far back as they are kept. It says from when on it is complete.

use curt_core::ports::{ClickFilter, ClickRanking, ClickReports, Top};
use curt_core::{ClickClass, ClickSubject, Dimension, PortResult, UnixMillis};

use super::range::Range;

/// What is to be ranked.
#[derive(Clone, Debug)]
pub struct RankingQuery<'a> {
    pub subject: &'a ClickSubject,
    pub dimension: Dimension,
    pub range: &'a Range,
    pub filter: &'a ClickFilter,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankingReport {
    pub top: Top,
    /// From here to the end of the range every click is counted.
    pub complete_from: UnixMillis,
}

impl RankingQuery<'_> {
    /// Whether the rollups cannot tell.
    pub(super) fn needs_clicks(&self) -> bool {
        let is_of_rollups = match self.filter.class {
            None => true,
            Some(class) => class == ClickClass::Human && self.dimension.counts_humans(),
        };
        !(is_of_rollups && self.filter.values.is_empty())
    }

    pub(super) async fn rank_rollups(&self, store: &dyn ClickReports) -> PortResult<RankingReport> {
        let hours = self.range.counted();
        let top = store.top(self.subject, self.dimension, hours, self.limit);
        Ok(RankingReport {
            top: top.await?,
            complete_from: self.range.from(),
        })
    }

    /// Clicks before `kept_from` may be gone.
    pub(super) async fn rank_clicks(
        &self,
        store: &dyn ClickReports,
        kept_from: UnixMillis,
    ) -> PortResult<RankingReport> {
        let ranking = ClickRanking {
            subject: self.subject.clone(),
            from: self.range.from(),
            before: self.range.counted_before(),
            filter: self.click_filter(),
            dimension: self.dimension,
            limit: self.limit,
        };
        Ok(RankingReport {
            top: store.rank_clicks(&ranking).await?,
            complete_from: self.range.from().max(kept_from),
        })
    }

    /// As rollups do it: other dimensions than the class are of humans unless another class is asked for.
    fn click_filter(&self) -> ClickFilter {
        let mut filter = self.filter.clone();
        if self.dimension.counts_humans() {
            filter.class.get_or_insert(ClickClass::Human);
        }
        filter
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use curt_core::ports::{ClickStore as _, ClickWindow};
    use curt_core::{
        Click, ClickDetails, ClickOutcome, Day, DomainId, Key, LinkId, Sketch, SubjectDay,
    };
    use curt_memory::MemoryClickStore;
    use curt_testkit::sample::partition;

    use super::super::{Edge, ReportError, Reports, Zone};
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3_600);
    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

    fn id() -> LinkId {
        LinkId::new(DomainId::DEFAULT, Key::parse("abc").unwrap())
    }

    fn click(at: UnixMillis, country: &str, browser: &str) -> Click {
        Click {
            at,
            outcome: ClickOutcome::Link(id(), 1),
            owner: None,
            tags: Vec::new(),
            class: ClickClass::Human,
            country: country.into(),
            browser: browser.into(),
            system: "Linux".into(),
            device: "desktop".into(),
            referrer: "direct".into(),
            language: "de".into(),
            details: ClickDetails::default(),
            address: None,
        }
    }

    async fn reports(clicks: Vec<Click>, clicks_kept: Option<Duration>) -> Reports {
        let store = Arc::new(MemoryClickStore::new());
        let flush = ClickWindow {
            partition: partition(0),
            from: 0,
            to: 1,
            days: vec![SubjectDay {
                subject: ClickSubject::Link(id(), 1),
                day: Day::of(NOW.minus(DAY)),
                rollups: vec![curt_core::Rollup {
                    hour: NOW.minus(DAY).hour(),
                    dimension: Dimension::Browser,
                    value: "of the rollups".into(),
                    count: 1_000_000,
                }],
                visitors: Sketch::new(),
            }]
            .into(),
            blocks: Vec::new(),
        }
        .with_clicks(&clicks);
        assert!(store.apply(flush).await.unwrap());
        Reports::new(store, clicks_kept)
    }

    /// The last 30 days.
    fn range() -> Range {
        Range::asked(None, Some(Edge::At(NOW)), NOW, &Zone::UTC).unwrap()
    }

    fn with(values: &[(Dimension, &str)]) -> ClickFilter {
        let values = values.iter().map(|(name, value)| (*name, (*value).into()));
        ClickFilter {
            class: None,
            values: values.collect(),
        }
    }

    async fn browsers(
        reports: &Reports,
        filter: &ClickFilter,
    ) -> Result<RankingReport, ReportError> {
        let ranking = RankingQuery {
            subject: &ClickSubject::Link(id(), 1),
            dimension: Dimension::Browser,
            range: &range(),
            filter,
            limit: 10,
        };
        reports.top(&ranking, NOW).await
    }

    #[tokio::test]
    async fn browsers_of_one_country_are_ranked_among_people() {
        let at = NOW.minus(DAY);
        let bot = Click {
            class: ClickClass::Bot,
            ..click(at, "DE", "Crawler")
        };
        let clicks = vec![
            click(at, "DE", "Firefox"),
            click(at, "FR", "Chrome"),
            click(at, "DE", "Chrome"),
            click(at, "DE", "Firefox"),
            bot,
        ];
        let reports = reports(clicks, None).await;
        let german = with(&[(Dimension::Country, "DE")]);
        let ranked = browsers(&reports, &german).await.unwrap();
        assert_eq!(
            ranked.top.values,
            [("Firefox".into(), 2), ("Chrome".into(), 1)]
        );
        assert_eq!(ranked.complete_from, range().from());
        let bots = ClickFilter {
            class: Some(ClickClass::Bot),
            ..german
        };
        let ranked = browsers(&reports, &bots).await.unwrap();
        assert_eq!(ranked.top.values, [("Crawler".into(), 1)]);
        let nobody = with(&[(Dimension::Country, "DE"), (Dimension::Language, "fr")]);
        let ranked = browsers(&reports, &nobody).await.unwrap();
        assert_eq!(ranked.top, Top::default());
    }

    /// However many there were, and also where no click is kept.
    #[tokio::test]
    async fn without_filters_the_rollups_tell() {
        let reports = reports(Vec::new(), Some(Duration::ZERO)).await;
        let users = ClickFilter {
            class: Some(ClickClass::Human),
            ..ClickFilter::default()
        };
        for filter in [ClickFilter::default(), users] {
            let ranked = browsers(&reports, &filter).await.unwrap();
            assert_eq!(ranked.top.values, [("of the rollups".into(), 1_000_000)]);
            assert_eq!(ranked.complete_from, range().from());
        }
        let refused = browsers(&reports, &with(&[(Dimension::Country, "DE")])).await;
        assert!(matches!(refused, Err(ReportError::NoClicks)));
    }

    #[tokio::test]
    async fn all_clicks_are_ranked_however_many_there_are() {
        let at = |second| NOW.minus(Duration::from_secs(second));
        let clicks = (1..=30_000).map(|second| click(at(second), "DE", "Firefox"));
        let reports = reports(clicks.collect(), None).await;
        let german = with(&[(Dimension::Country, "DE")]);
        let ranked = browsers(&reports, &german).await.unwrap();
        assert_eq!(ranked.top.values, [("Firefox".into(), 30_000)]);
        assert_eq!(ranked.complete_from, range().from());
    }

    #[tokio::test]
    async fn a_range_from_before_the_oldest_click_that_is_kept_is_not_complete() {
        let clicks = vec![click(NOW.minus(DAY), "DE", "Firefox")];
        let german = with(&[(Dimension::Country, "DE")]);
        for (kept, complete_from) in [(DAY * 10, NOW.minus(DAY * 10)), (DAY * 40, range().from())] {
            let reports = reports(clicks.clone(), Some(kept)).await;
            let ranked = browsers(&reports, &german).await.unwrap();
            assert_eq!(ranked.complete_from, complete_from);
        }
    }
}
