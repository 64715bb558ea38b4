//! Live feeds.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use curt_core::Scope;
use http::{HeaderMap, Uri};
use tokio_util::sync::CancellationToken;

use super::Feeds;
use super::feeds::FeedOwner;
use super::live::Opening;
use super::query::{self, LiveParams};
use super::routes::query_text;
use super::subject::{LinksParams, Wanted};
use crate::api::documented::{LinkLiveProblems, LiveProblems};
use crate::api::links::known_key;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::server::Stopping;
use crate::state::App;

const LAST_EVENT_ID: &str = "last-event-id";

/// Follow a link's clicks
///
/// Server-Sent Events, for instance with `curl -N`: an event `clicks` with the counts that came in since the last one,
/// as soon as they are counted, and at last an event `end` with the reason: `time`, `shutdown`, or `access` when you may
/// not see the link any more. In between there are comments, so that the connection is not taken for dead.
///
/// Events have ids. A client that comes back with the id of the last one in `Last-Event-ID`, as browsers do by themselves,
/// first gets what was counted in the meantime, from any server and within 24 hours. Where that is not possible it gets an
/// event `gap` with the reason: `too_old`, `unknown_id`, or `counts_reset` when counts were deleted; the reports have the
/// totals.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/live",
    tag = "stats",
    operation_id = "followLinkClicks",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        LiveParams,
        ("Last-Event-ID" = Option<String>, Header, nullable = false,
            description = "The id of the event that you saw last.", example = "9f86d081884c7d65-490896-12-3-0-0"),
    ),
    responses((status = 200, description = "The events.", body = String, content_type = "text/event-stream"), LinkLiveProblems),
)]
pub(crate) async fn of_link(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    Extension(feeds): Extension<Arc<Feeds>>,
    stopping: Option<Extension<Stopping>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::live(query_text(&uri))?;
    which.refuse()?;
    let slot = feeds.admit(FeedOwner::new(&principal, caller.address))?;
    let opening = Opening {
        app,
        caller,
        wanted: Wanted::Link(known_key(key)?),
        query,
        last_event_id: last_event_id(&headers),
        slot,
        stop: stop_of(stopping),
    };
    opening.open().await
}

/// Follow the clicks of all links
///
/// The same events for your own links together, or for those with a tag. A user, an address and the server have only so
/// many feeds at once; some are kept for administrators.
#[utoipa::path(
    get,
    path = "/api/v1/live",
    tag = "stats",
    operation_id = "followClicks",
    params(
        LinksParams,
        LiveParams,
        ("Last-Event-ID" = Option<String>, Header, nullable = false,
            description = "The id of the event that you saw last.", example = "9f86d081884c7d65-490896-12-3-0-0"),
    ),
    responses((status = 200, description = "The events.", body = String, content_type = "text/event-stream"), LiveProblems),
)]
pub(crate) async fn link_caller(
    State(app): State<Arc<App>>,
    caller: Caller,
    Extension(feeds): Extension<Arc<Feeds>>,
    stopping: Option<Extension<Stopping>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let (query, which) = query::live(query_text(&uri))?;
    let slot = feeds.admit(FeedOwner::new(&principal, caller.address))?;
    let opening = Opening {
        app,
        caller,
        wanted: Wanted::Links(which),
        query,
        last_event_id: last_event_id(&headers),
        slot,
        stop: stop_of(stopping),
    };
    opening.open().await
}

fn stop_of(stopping: Option<Extension<Stopping>>) -> CancellationToken {
    stopping.map_or_else(Default::default, |Extension(stopping)| stopping.0)
}

/// What is no text is no id of ours, and is told so like any other.
fn last_event_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(LAST_EVENT_ID)?;
    Some(id.to_str().unwrap_or_default().to_owned()).filter(|id| !id.is_empty())
}
