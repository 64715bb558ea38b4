//! Reports on clicks: numbers, series, the most frequent values, clicks one by one, and what comes in right now.
//!
//! | of a link | of all links, or of those with a tag | of clicks that met no link |
//! |---|---|---|
//! | `/links/{key}/stats` | `/stats` | `/orphans` |
//! | `/links/{key}/stats/{dimension}` | `/stats/{dimension}` | `/orphans/{dimension}` |
//! | `/links/{key}/clicks` | `/clicks` | `/orphans/clicks` |
//! | `/links/{key}/live` | `/live` | |
//!
//! `DELETE /links/{key}/clicks` erases them.
//!
//! Values such as a referrer's host or an unknown key are what strangers sent: they go out as JSON strings and as
//! guarded fields of CSV, never as part of a header.

mod body;
mod click_body;
mod click_routes;
mod clicks;
mod erase;
mod feeds;
mod filter;
mod live;
mod live_routes;
mod position;
mod query;
mod routes;
mod subject;

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use curt_clicks::report::{RankingQuery, ReportError, ReportRangeError};
use curt_core::ports::ClickFilter;
use curt_core::{Dimension, UnixMillis};
use utoipa_axum::routes;

pub(crate) use feeds::Feeds;

use self::body::{StatsBody, TopBody};
use self::query::{SeriesQuery, TopQuery};
use self::subject::Subject;
use super::DocumentedRoutes;
use crate::problem::{Problem, ProblemCode};

pub(super) fn documented_routes() -> [DocumentedRoutes; 15] {
    [
        || routes!(routes::of_link),
        || routes!(routes::of_link_csv),
        || routes!(routes::top_of_link),
        || routes!(click_routes::of_link, erase::of_link),
        || routes!(click_routes::of_link_csv),
        || routes!(live_routes::of_link),
        || routes!(routes::link_caller),
        || routes!(routes::of_links_csv),
        || routes!(routes::top_of_links),
        || routes!(click_routes::link_caller),
        || routes!(click_routes::of_links_csv),
        || routes!(live_routes::link_caller),
        || routes!(routes::of_orphans),
        || routes!(routes::top_of_orphans),
        || routes!(click_routes::of_orphans),
    ]
}

/// Totals and series.
async fn summary(
    subject: &Subject,
    query: &SeriesQuery,
    now: UnixMillis,
) -> Result<StatsBody, Problem> {
    let (reports, clicks) = (Arc::clone(&subject.reports), subject.clicks.clone());
    let (range, zone, bucket) = (query.range, query.zone.clone(), query.bucket);
    let reading = async move { reports.summary(&clicks, &range, &zone, bucket).await };
    let summary = subject.scans.read(subject.asker, reading).await?;
    let summary = summary.map_err(refused)?;
    let lag_max = subject.reports.lag_max(now);
    Ok(StatsBody::new(query, &summary, lag_max))
}

async fn top(subject: &Subject, query: &TopQuery, now: UnixMillis) -> Result<Response, Problem> {
    let (reports, clicks) = (Arc::clone(&subject.reports), subject.clicks.clone());
    let asked = query.clone();
    let reading = async move {
        let ranking = RankingQuery {
            subject: &clicks,
            dimension: asked.dimension,
            range: &asked.range,
            filter: &asked.filter,
            limit: asked.limit,
        };
        reports.top(&ranking, now).await
    };
    let ranked = subject.scans.read(subject.asker, reading).await?;
    let ranked = ranked.map_err(|error| match error {
        ReportError::NoClicks => {
            Problem::invalid_field(first_of(&query.filter), "unavailable", error.to_string())
        }
        _ => refused(error),
    })?;
    let lag_max = subject.reports.lag_max(now);
    // A file of countries need not have cities; that shows only in what was counted.
    let has_no_cities = query.dimension == Dimension::City && ranked.top.total() == 0;
    let missing = subject.reports.missing_setting(query.dimension);
    let missing = missing.or(has_no_cities.then_some("clicks.countries"));
    Ok(Json(TopBody::new(query, ranked, lag_max, missing)).into_response())
}

/// The name of a parameter that filters.
fn first_of(filter: &ClickFilter) -> &'static str {
    let mut values = filter.values.iter();
    values
        .next()
        .map_or("class", |(dimension, _)| dimension.name())
}

fn refused(error: ReportError) -> Problem {
    match error {
        ReportError::Range(error) => out_of_range(error),
        ReportError::NoClicks => Problem::new(ProblemCode::NotFound).detail(error.to_string()),
        ReportError::Store(error) => error.into(),
    }
}

fn out_of_range(error: ReportRangeError) -> Problem {
    let (field, code) = match error {
        ReportRangeError::Empty => ("to", "order"),
        ReportRangeError::TooLong => ("from", "length"),
        ReportRangeError::TooManyPoints(_) => ("bucket", "count"),
        ReportRangeError::Calendar => ("from", "time"),
    };
    Problem::invalid_field(field, code, error.to_string())
}
