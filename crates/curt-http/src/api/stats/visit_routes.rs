//! Visits one by one.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use curt_core::Scope;
use http::Uri;

use super::query::{self, PageParams, RangeParams, VisitParams};
use super::routes::text;
use super::subject::{LinksParams, Wanted};
use super::visit_body::VisitsBody;
use super::visits;
use crate::api::documented::{LinkStatsProblems, StatsProblems};
use crate::api::links::known_key;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

/// Single visits of a link
///
/// Newest first, page by page, as far back as the server keeps single visits. Filters are combined with "and".
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/visits",
    tag = "stats",
    operation_id = "listLinkVisits",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        RangeParams,
        VisitParams,
        PageParams,
    ),
    responses(
        (status = 200, description = "One page of visits.", body = VisitsBody, headers(
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
    let (query, which) = query::visits(text(&uri), app.clock.now())?;
    which.refuse()?;
    visits::page(&subject, query, uri.path(), text(&uri)).await
}

/// Single visits of a link, as CSV
///
/// All of the range, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/visits.csv",
    tag = "stats",
    operation_id = "exportLinkVisits",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        RangeParams,
        VisitParams,
    ),
    responses((status = 200, description = "The visits.", body = String, content_type = "text/csv"), LinkStatsProblems),
)]
pub(crate) async fn of_link_csv(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let subject = Wanted::Link(known_key(key)?).allowed(&app, &caller).await?;
    let (query, which) = query::visits_for_file(text(&uri), app.clock.now())?;
    which.refuse()?;
    visits::file(subject, query).await
}

/// Single visits of all links
///
/// Of your own links together, or of those with a tag; newest first, page by page.
#[utoipa::path(
    get,
    path = "/api/v1/visits",
    tag = "stats",
    operation_id = "listVisits",
    params(LinksParams, RangeParams, VisitParams, PageParams),
    responses(
        (status = 200, description = "One page of visits.", body = VisitsBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        StatsProblems,
    ),
)]
pub(crate) async fn of_links(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::visits(text(&uri), app.clock.now())?;
    let subject = Wanted::Links(which).allowed(&app, &caller).await?;
    visits::page(&subject, query, uri.path(), text(&uri)).await
}

/// Single visits of all links, as CSV
///
/// All of the range, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/visits.csv",
    tag = "stats",
    operation_id = "exportVisits",
    params(LinksParams, RangeParams, VisitParams),
    responses((status = 200, description = "The visits.", body = String, content_type = "text/csv"), StatsProblems),
)]
pub(crate) async fn of_links_csv(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::visits_for_file(text(&uri), app.clock.now())?;
    let subject = Wanted::Links(which).allowed(&app, &caller).await?;
    visits::file(subject, query).await
}

/// Single visits that met no link
///
/// For administrators: newest first, page by page.
#[utoipa::path(
    get,
    path = "/api/v1/orphans/visits",
    tag = "stats",
    operation_id = "listOrphanVisits",
    params(RangeParams, VisitParams, PageParams),
    responses(
        (status = 200, description = "One page of visits.", body = VisitsBody, headers(
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
    let (query, which) = query::visits(text(&uri), app.clock.now())?;
    which.refuse()?;
    visits::page(&subject, query, uri.path(), text(&uri)).await
}
