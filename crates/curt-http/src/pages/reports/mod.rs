//! Reports on clicks, as pages show them.

mod asked;
mod latest;

use std::sync::Arc;

use curt_clicks::report::{ReportError, ReportRangeError, Reports, Summary};
use curt_core::limits::PAGE_CLICKS_MAX;
use curt_core::ports::{ClickFilter, ClickQuery, Top};
use curt_core::{Click, ClickSubject, Dimension, OwnerId};

pub(super) use asked::AskedReport;
pub(super) use latest::LatestClick;

use super::charts::{Breakdown, CountryMap, SeriesChart, grouped};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

/// Values of a dimension that a page lists; of countries more, for the map.
const VALUES_MAX: usize = 8;
const COUNTRIES_MAX: usize = 40;
const LATEST_MAX: usize = 10;
const _: () = assert!(LATEST_MAX <= PAGE_CLICKS_MAX);

/// What clicks on links are told apart by, in the order of the page.
const OF_LINKS: &[Dimension] = &[
    Dimension::Country,
    Dimension::City,
    Dimension::Referrer,
    Dimension::ReferrerGroup,
    Dimension::Browser,
    Dimension::System,
    Dimension::Device,
    Dimension::Language,
    Dimension::Class,
    Dimension::UtmSource,
    Dimension::UtmMedium,
    Dimension::UtmCampaign,
    Dimension::UtmTerm,
    Dimension::UtmContent,
];

const OF_ORPHANS: &[Dimension] = &[
    Dimension::Key,
    Dimension::Orphan,
    Dimension::Country,
    Dimension::Referrer,
    Dimension::Browser,
    Dimension::Class,
];

/// A report as a template shows it.
pub(super) struct ReportView {
    pub(super) humans: String,
    pub(super) visitors: String,
    pub(super) others: String,
    pub(super) is_empty: bool,
    pub(super) series: SeriesChart,
    pub(super) map: Option<CountryMap>,
    pub(super) breakdowns: Vec<Breakdown>,
    /// `utm_` parameters, where a click had any.
    pub(super) utm: Vec<Breakdown>,
    pub(super) latest: Vec<LatestClick>,
    /// How many seconds it may be behind.
    pub(super) lag_seconds: u64,
}

/// Why there is no report on the time that was asked for.
pub(super) fn no_such_time(error: ReportRangeError) -> Problem {
    Problem::new(ProblemCode::InvalidInput).detail(error.to_string())
}

/// The addresses of files with the same numbers: `base` is the subject's in the API.
pub(super) fn files(base: &str, asked: &AskedReport) -> Vec<(&'static str, String)> {
    let query = asked.api_query();
    vec![
        ("Series as CSV", format!("{base}/stats.csv?{query}")),
        ("Clicks as CSV", format!("{base}/clicks.csv?{query}")),
    ]
}

/// What was read of the store.
struct ReadReport {
    summary: Summary,
    tops: Vec<(Dimension, Top)>,
    latest: Vec<Click>,
}

/// Reads everything that the page of a subject shows, in one turn of the caller's.
pub(super) async fn load(
    app: &App,
    asker: OwnerId,
    subject: ClickSubject,
    asked: &AskedReport,
) -> Result<ReportView, Problem> {
    let reports = app.reports.clone().ok_or_else(|| {
        Problem::new(ProblemCode::NotFound).detail("This server does not count clicks.")
    })?;
    let now = app.clock.now();
    let dimensions = match subject {
        ClickSubject::Orphans => OF_ORPHANS,
        _ => OF_LINKS,
    };
    let (reading, wanted) = (Arc::clone(&reports), asked.clone());
    let reading = async move { read(&reading, &subject, &wanted, dimensions).await };
    let read = app.scans.read(asker, reading).await?.map_err(failed)?;
    let lag_seconds = reports.lag_max(now).as_secs();
    Ok(view(&reports, asked, read, lag_seconds))
}

async fn read(
    reports: &Reports,
    subject: &ClickSubject,
    asked: &AskedReport,
    dimensions: &[Dimension],
) -> Result<ReadReport, ReportError> {
    let range = &asked.range;
    let limit = |dimension: &Dimension| match dimension {
        Dimension::Country => COUNTRIES_MAX,
        _ => VALUES_MAX,
    };
    let asked_for: Vec<(Dimension, usize)> = dimensions
        .iter()
        .map(|dimension| (*dimension, limit(dimension)))
        .collect();
    let query = ClickQuery {
        subject: subject.clone(),
        from: range.from(),
        before: range.counted_before(),
        filter: ClickFilter::default(),
        cursor: None,
        limit: LATEST_MAX,
    };
    // At once: a store reads them on different cores.
    let ((summary, tops), latest) = tokio::try_join!(
        asked.summary_and_tops(reports, subject, &asked_for),
        async { Ok(reports.clicks(&query).await?) },
    )?;
    Ok(ReadReport {
        summary,
        tops: dimensions.iter().copied().zip(tops).collect(),
        latest: latest.clicks,
    })
}

fn view(reports: &Reports, asked: &AskedReport, read: ReadReport, lag_seconds: u64) -> ReportView {
    let ReadReport {
        summary,
        tops,
        latest,
    } = read;
    let is_utm = |dimension: Dimension| dimension.name().starts_with("utm_");
    let mut map = None;
    let (mut breakdowns, mut utm) = (Vec::new(), Vec::new());
    for (dimension, top) in tops {
        let has_none = top.total() == 0;
        let missing = reports.missing_setting(dimension);
        let missing =
            missing.or((dimension == Dimension::City && has_none).then_some("clicks.countries"));
        if dimension == Dimension::Country {
            map = Some(CountryMap::new(&top)).filter(|map| !map.tiles.is_empty());
        }
        let shown = Breakdown::new(dimension, &cut(top), missing);
        match is_utm(dimension) {
            true if has_none => {}
            true => utm.push(shown),
            false => breakdowns.push(shown),
        }
    }
    let others = summary.totals.total().saturating_sub(summary.totals.human);
    ReportView {
        humans: grouped(summary.totals.human),
        visitors: grouped(summary.visitors),
        others: grouped(others),
        is_empty: summary.totals.total() == 0,
        series: SeriesChart::new(&summary, asked.bucket),
        map,
        breakdowns,
        utm,
        latest: latest.iter().map(LatestClick::new).collect(),
        lag_seconds,
    }
}

/// The map shows more countries than the table beside it.
fn cut(top: Top) -> Top {
    let rest = top.rest;
    let mut cut = Top::of(top.values, VALUES_MAX);
    cut.rest = cut.rest.saturating_add(rest);
    cut
}

fn failed(error: ReportError) -> Problem {
    match error {
        ReportError::Store(error) => error.into(),
        ReportError::Range(_) | ReportError::NoClicks => {
            Problem::new(ProblemCode::InvalidInput).detail(error.to_string())
        }
    }
}
