//! Clicks one by one.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use curt_core::Scope;
use http::Uri;

use super::click_body::ClicksBody;
use super::clicks;
use super::query::{self, ClickParams, PageParams, RangeParams};
use super::routes::query_text;
use super::subject::{LinksParams, Wanted};
use crate::api::documented::{LinkStatsProblems, StatsProblems};
use crate::api::links::known_key;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

/// Single clicks of a link
///
/// Newest first, page by page, as far back as the server keeps single clicks. Filters are combined with "and".
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/clicks",
    tag = "stats",
    operation_id = "listLinkClicks",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        RangeParams,
        ClickParams,
        PageParams,
    ),
    responses(
        (status = 200, description = "One page of clicks.", body = ClicksBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        LinkStatsProblems,
    ),
)]
pub(crate) async fn of_link(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Link(known_key(key)?).allowed(&app, &caller).await?;
    let (query, which) = query::clicks(query_text(&uri), app.clock.now())?;
    which.refuse()?;
    clicks::page(&subject, query, &uri).await
}

/// Single clicks of a link, as CSV
///
/// All of the range, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/clicks.csv",
    tag = "stats",
    operation_id = "exportLinkClicks",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        RangeParams,
        ClickParams,
    ),
    responses((status = 200, description = "The clicks.", body = String, content_type = "text/csv"), LinkStatsProblems),
)]
pub(crate) async fn of_link_csv(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Link(known_key(key)?).allowed(&app, &caller).await?;
    let (query, which) = query::clicks_for_file(query_text(&uri), app.clock.now())?;
    which.refuse()?;
    clicks::file(subject, query).await
}

/// Single clicks of all links
///
/// Of your own links together, or of those with a tag; newest first, page by page.
#[utoipa::path(
    get,
    path = "/api/v1/clicks",
    tag = "stats",
    operation_id = "listClicks",
    params(LinksParams, RangeParams, ClickParams, PageParams),
    responses(
        (status = 200, description = "One page of clicks.", body = ClicksBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        StatsProblems,
    ),
)]
pub(crate) async fn link_caller(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::clicks(query_text(&uri), app.clock.now())?;
    let subject = Wanted::Links(which).allowed(&app, &caller).await?;
    clicks::page(&subject, query, &uri).await
}

/// Single clicks of all links, as CSV
///
/// All of the range, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/clicks.csv",
    tag = "stats",
    operation_id = "exportClicks",
    params(LinksParams, RangeParams, ClickParams),
    responses((status = 200, description = "The clicks.", body = String, content_type = "text/csv"), StatsProblems),
)]
pub(crate) async fn of_links_csv(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::clicks_for_file(query_text(&uri), app.clock.now())?;
    let subject = Wanted::Links(which).allowed(&app, &caller).await?;
    clicks::file(subject, query).await
}

/// Single clicks that met no link
///
/// For administrators: newest first, page by page.
#[utoipa::path(
    get,
    path = "/api/v1/orphans/clicks",
    tag = "stats",
    operation_id = "listOrphanClicks",
    params(RangeParams, ClickParams, PageParams),
    responses(
        (status = 200, description = "One page of clicks.", body = ClicksBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        StatsProblems,
    ),
)]
pub(crate) async fn of_orphans(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Orphans.allowed(&app, &caller).await?;
    let (query, which) = query::clicks(query_text(&uri), app.clock.now())?;
    which.refuse()?;
    clicks::page(&subject, query, &uri).await
}
