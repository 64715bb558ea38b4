//! Live feeds.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use curt_core::Scope;
use http::Uri;

use super::Feeds;
use super::live::Opening;
use super::query::{self, LiveParams, LiveQuery};
use super::routes::text;
use super::subject::{LinksParams, Wanted};
use crate::api::documented::{LinkLiveProblems, LiveProblems};
use crate::api::links::known_key;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::server::Stopping;
use crate::state::App;

/// Follow a link's visits
///
/// Server-Sent Events, for instance with `curl -N`: an event `visits` with the counts that came in since the last one,
/// as soon as they are counted, and at last an event `end` with the reason: `time`, `shutdown`, or `access` when you may
/// not see the link any more. In between there are comments, so that the connection is not taken for dead.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/live",
    tag = "stats",
    operation_id = "followLinkVisits",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        LiveParams,
    ),
    responses((status = 200, description = "The events.", body = String, content_type = "text/event-stream"), LinkLiveProblems),
)]
pub(crate) async fn of_link(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    Extension(feeds): Extension<Arc<Feeds>>,
    stopping: Option<Extension<Stopping>>,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.needs(&app, Scope::Read).await?;
    let (query, which) = query::live(text(&uri))?;
    which.refuse()?;
    let wanted = Wanted::Link(known_key(key)?);
    follow(app, caller, &feeds, stopping, wanted, query).await
}

/// Follow the visits of all links
///
/// The same events for your own links together, or for those with a tag.
#[utoipa::path(
    get,
    path = "/api/v1/live",
    tag = "stats",
    operation_id = "followVisits",
    params(LinksParams, LiveParams),
    responses((status = 200, description = "The events.", body = String, content_type = "text/event-stream"), LiveProblems),
)]
pub(crate) async fn of_links(
    State(app): State<Arc<App>>,
    caller: Caller,
    Extension(feeds): Extension<Arc<Feeds>>,
    stopping: Option<Extension<Stopping>>,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.needs(&app, Scope::Read).await?;
    let (query, which) = query::live(text(&uri))?;
    follow(app, caller, &feeds, stopping, Wanted::Links(which), query).await
}

async fn follow(
    app: Arc<App>,
    caller: Caller,
    feeds: &Arc<Feeds>,
    stopping: Option<Extension<Stopping>>,
    wanted: Wanted,
    query: LiveQuery,
) -> Result<Response, Problem> {
    let subject = wanted.allowed(&app, &caller).await?;
    let slot = feeds.admit(subject.asker);
    let slot = slot.ok_or_else(|| Problem::new(ProblemCode::TooManyFeeds))?;
    let opening = Opening {
        app,
        caller,
        wanted,
        query,
        slot,
        stop: stopping.map_or_else(Default::default, |Extension(stopping)| stopping.0),
    };
    opening.open(subject).await
}
