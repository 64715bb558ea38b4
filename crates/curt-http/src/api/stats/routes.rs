//! Totals, series and the most frequent values.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use curt_core::Scope;
use http::Uri;

use super::body::{DimensionName, PointBody, StatsBody, TopBody};
use super::query::{self, ClickParams, RangeParams, SeriesParams};
use super::subject::{LinksParams, Wanted};
use super::{summary, top};
use crate::api::csv_file::{self as csv, Lines};
use crate::api::documented::{LinkStatsProblems, StatsProblems};
use crate::api::links::known_key;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

const FILE: &str = "attachment; filename=\"stats.csv\"";

/// Clicks of a link
///
/// Totals, and a series without gaps. Numbers appear a few seconds after the clicks. Clicks of an earlier link that had
/// the same key are not among them.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/stats",
    tag = "stats",
    operation_id = "getLinkStats",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        RangeParams,
        SeriesParams,
    ),
    responses((status = 200, description = "What was counted.", body = StatsBody), LinkStatsProblems),
)]
pub(crate) async fn of_link(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Link(known_key(key)?).allowed(&app, &caller).await?;
    let (query, which) = query::series(query_text(&uri), app.clock.now())?;
    which.refuse()?;
    Ok(Json(summary(&subject, &query, app.clock.now()).await?).into_response())
}

/// Clicks of a link, as CSV
///
/// The series of the link's clicks, a line per point.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/stats.csv",
    tag = "stats",
    operation_id = "exportLinkStats",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        RangeParams,
        SeriesParams,
    ),
    responses((status = 200, description = "The series.", body = String, content_type = "text/csv"), LinkStatsProblems),
)]
pub(crate) async fn of_link_csv(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Link(known_key(key)?).allowed(&app, &caller).await?;
    let (query, which) = query::series(query_text(&uri), app.clock.now())?;
    which.refuse()?;
    Ok(exported(&summary(&subject, &query, app.clock.now()).await?))
}

/// What visitors of a link have in common
///
/// The most frequent values: countries, browsers, systems, devices, referring hosts, languages, UTM parameters and more;
/// or classes of clicks.
/// Filters are combined with "and". Without them every click is counted, however many; with them the newest 20,000 single
/// clicks of the range, as far back as the server keeps them: see `complete_from`.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/stats/{dimension}",
    tag = "stats",
    operation_id = "getLinkTop",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        ("dimension" = inline(DimensionName), Path, description = "By what to count; not `orphan` or `key`.", example = "country"),
        RangeParams,
        ClickParams,
        ("limit" = Option<u16>, Query, nullable = false, minimum = 1, maximum = 1_000, example = 10,
            description = "How many values at most; 10 unless said otherwise."),
    ),
    responses((status = 200, description = "The most frequent values.", body = TopBody), LinkStatsProblems),
)]
pub(crate) async fn top_of_link(
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let Path((key, dimension)) = path.map_err(|_| Problem::new(ProblemCode::LinkNotFound))?;
    let subject = Wanted::Link(key).allowed(&app, &caller).await?;
    let dimension = query::dimension(&dimension, &DimensionName::OF_LINKS)?;
    let now = app.clock.now();
    let (query, which) = query::top(query_text(&uri), dimension, now)?;
    which.refuse()?;
    top(&subject, &query, now).await
}

/// Clicks of all links
///
/// Of your own links together, or of those with a tag; for administrators of anybody's.
#[utoipa::path(
    get,
    path = "/api/v1/stats",
    tag = "stats",
    operation_id = "getStats",
    params(LinksParams, RangeParams, SeriesParams),
    responses((status = 200, description = "What was counted.", body = StatsBody), StatsProblems),
)]
pub(crate) async fn link_caller(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::series(query_text(&uri), app.clock.now())?;
    let subject = Wanted::Links(which).allowed(&app, &caller).await?;
    Ok(Json(summary(&subject, &query, app.clock.now()).await?).into_response())
}

/// Clicks of all links, as CSV
///
/// The series of their clicks, a line per point.
#[utoipa::path(
    get,
    path = "/api/v1/stats.csv",
    tag = "stats",
    operation_id = "exportStats",
    params(LinksParams, RangeParams, SeriesParams),
    responses((status = 200, description = "The series.", body = String, content_type = "text/csv"), StatsProblems),
)]
pub(crate) async fn of_links_csv(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::series(query_text(&uri), app.clock.now())?;
    let subject = Wanted::Links(which).allowed(&app, &caller).await?;
    Ok(exported(&summary(&subject, &query, app.clock.now()).await?))
}

/// What visitors of all links have in common
///
/// The most frequent values over your own links together, or over those with a tag. Filters work as for one link.
#[utoipa::path(
    get,
    path = "/api/v1/stats/{dimension}",
    tag = "stats",
    operation_id = "getTop",
    params(
        ("dimension" = inline(DimensionName), Path, description = "By what to count; not `orphan` or `key`.", example = "country"),
        LinksParams,
        RangeParams,
        ClickParams,
        ("limit" = Option<u16>, Query, nullable = false, minimum = 1, maximum = 1_000, example = 10,
            description = "How many values at most; 10 unless said otherwise."),
    ),
    responses((status = 200, description = "The most frequent values.", body = TopBody), StatsProblems),
)]
pub(crate) async fn top_of_links(
    State(app): State<Arc<App>>,
    dimension: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Read).await?;
    let dimension = query::dimension(&named(dimension)?, &DimensionName::OF_LINKS)?;
    let now = app.clock.now();
    let (query, which) = query::top(query_text(&uri), dimension, now)?;
    let subject = Wanted::Links(which).allowed(&app, &caller).await?;
    top(&subject, &query, now).await
}

/// Clicks that met no link
///
/// For administrators: requests for unknown keys, for links that are gone, and for the base URL. Requests for unknown
/// keys beyond `limits.misses_per_address` are not among them; the metric `curt_misses_unrecorded_total` counts those.
#[utoipa::path(
    get,
    path = "/api/v1/orphans",
    tag = "stats",
    operation_id = "getOrphans",
    params(RangeParams, SeriesParams),
    responses((status = 200, description = "What was counted.", body = StatsBody), StatsProblems),
)]
pub(crate) async fn of_orphans(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Orphans.allowed(&app, &caller).await?;
    let (query, which) = query::series(query_text(&uri), app.clock.now())?;
    which.refuse()?;
    Ok(Json(summary(&subject, &query, app.clock.now()).await?).into_response())
}

/// What clicks that met no link have in common
///
/// For administrators: the most frequent values. `key` lists the keys that were asked for. Filters work as for links.
#[utoipa::path(
    get,
    path = "/api/v1/orphans/{dimension}",
    tag = "stats",
    operation_id = "getOrphansTop",
    params(
        ("dimension" = inline(DimensionName), Path, description = "By what to count.", example = "key"),
        RangeParams,
        ClickParams,
        ("limit" = Option<u16>, Query, nullable = false, minimum = 1, maximum = 1_000, example = 10,
            description = "How many values at most; 10 unless said otherwise."),
    ),
    responses((status = 200, description = "The most frequent values.", body = TopBody), StatsProblems),
)]
pub(crate) async fn top_of_orphans(
    State(app): State<Arc<App>>,
    dimension: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Orphans.allowed(&app, &caller).await?;
    let dimension = query::dimension(&named(dimension)?, &DimensionName::OF_ORPHANS)?;
    let now = app.clock.now();
    let (query, which) = query::top(query_text(&uri), dimension, now)?;
    which.refuse()?;
    top(&subject, &query, now).await
}

pub(super) fn query_text(uri: &Uri) -> &str {
    uri.query().unwrap_or_default()
}

fn named(dimension: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let Path(name) = dimension.map_err(|_| Problem::new(ProblemCode::NotFound))?;
    Ok(name)
}

fn exported(stats: &StatsBody) -> Response {
    let mut lines = Lines::new(&PointBody::COLUMNS);
    for point in &stats.series {
        lines.push(&point.cells());
    }
    csv::file(FILE, Body::from(lines.into_text()))
}
