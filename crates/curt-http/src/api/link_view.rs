//! Links as their owners see them now: with their effective state, and how often they were followed.

use std::slice;
use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use curt_clicks::report::CountedLink;
use curt_core::{EffectiveState, Link, OwnerId};
use http::StatusCode;
use http::header::ETAG;

use super::link_body::LinkBody;
use super::revision::etag;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

/// The links, in order, for `asker`. Clicks are left out where they cannot be told right now: a link is worth showing
/// without them.
pub(super) async fn view(
    app: &App,
    asker: OwnerId,
    links: &[Link],
) -> Result<Vec<LinkBody>, Problem> {
    let clicks = clicks(app, asker, links).await;
    view_counted(app, links, clicks).await
}

/// As [`view`], where the clicks of each link are known.
pub(super) async fn view_counted(
    app: &App,
    links: &[Link],
    clicks: Option<Vec<u64>>,
) -> Result<Vec<LinkBody>, Problem> {
    let states = app.links.effective_states(links).await?;
    let clicks = (0..links.len()).map(|at| clicks.as_ref().and_then(|all| all.get(at).copied()));
    let facts = links.iter().zip(states).zip(clicks);
    Ok(facts
        .map(|((link, state), clicks)| LinkBody::new(link, state, clicks, &app.public))
        .collect())
}

pub(crate) async fn clicks(app: &App, asker: OwnerId, links: &[Link]) -> Option<Vec<u64>> {
    let reports = Arc::clone(app.reports.as_ref()?);
    let (counted, now) = (counted(links), app.clock.now());
    let reading = async move { reports.link_clicks(&counted, now).await };
    match app.scans.read(asker, reading).await {
        Ok(Ok(clicks)) => Some(clicks),
        Ok(Err(error)) => {
            tracing::debug!(%error, "clicks of links not read");
            None
        }
        Err(_overloaded) => None,
    }
}

pub(super) fn counted(links: &[Link]) -> Vec<CountedLink> {
    let one = |link: &Link| CountedLink {
        id: link.id.clone(),
        generation: link.revision.generation,
        created_at: link.created_at,
    };
    links.iter().map(one).collect()
}

/// A link that was just made: nobody can have followed it, and nothing is asked for.
pub(super) fn view_new(app: &App, link: &Link) -> LinkBody {
    let state = link.effective_state(app.clock.now());
    let state = state.unwrap_or(EffectiveState::Active);
    let clicks = app.reports.as_ref().map(|_| 0);
    LinkBody::new(link, state, clicks, &app.public)
}

/// The answer with one link.
pub(super) async fn answer(app: &App, asker: OwnerId, link: &Link) -> Result<Response, Problem> {
    let body = view(app, asker, slice::from_ref(link)).await?.pop();
    let body = body.ok_or_else(|| Problem::new(ProblemCode::Internal))?;
    Ok(answer_with(StatusCode::OK, link, body))
}

/// The answer with a link that was just made.
pub(super) fn answer_new(app: &App, link: &Link) -> Response {
    answer_with(StatusCode::CREATED, link, view_new(app, link))
}

fn answer_with(status: StatusCode, link: &Link, body: LinkBody) -> Response {
    (status, [(ETAG, etag(link.revision))], Json(body)).into_response()
}
