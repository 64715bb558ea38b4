//! `/api/v1/links/bulk`: many links in one request.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_core::limits::HTTP_BULK_BODY_BYTES_MAX;
use curt_core::{Link, OwnerId, Scope};
use curt_links::{Created, LinkDraft, LinkError};
use http::StatusCode;

use super::body::{self, JSON, Object};
use super::bulk_body::{BulkBody, BulkResult, BulkResultsBody};
use super::documented::BulkProblems;
use super::idempotency::{REPLAYED, read_idempotency_key};
use super::link_view;
use super::links::YES;
use crate::body_budget::HeldByAnswer;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::rate_limit;
use crate::state::App;

/// Make many links
///
/// Up to 1,000 links in one request, stored together. The answer has one result per link, in order; a link that is
/// refused does not hold up the others. At most 20 of them may have a password. With an `Idempotency-Key` the whole request
/// can be repeated safely: each result is the link as it is now, or 410 `created-link-gone` if it is no more. A user, and an
/// address, have only so many such requests under way at once; one more is answered 429 `too-many-at-once`.
#[utoipa::path(
    post,
    path = "/api/v1/links/bulk",
    tag = "links",
    operation_id = "createLinks",
    params(("Idempotency-Key" = Option<String>, Header, nullable = false, description = "Any text of your choice, new for each new request.",
        pattern = "^[!-~]{1,255}$", example = "b7f0c9f4-8f0e-4c1e-9d6a-7a3c52a1f002")),
    request_body(content = BulkBody, content_type = "application/json"),
    responses(
        (status = 200, description = "What became of each link.", body = BulkResultsBody, headers(
            ("Idempotent-Replayed" = String, description = "`true` when an earlier request had made the links."))),
        BulkProblems,
    ),
)]
pub(crate) async fn bulk(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, raw) = request.into_parts();
    let principal = caller.require_creator(&app, None).await?;
    caller.refuse_exhausted(&app, principal.as_ref()).await?;
    body::media_type(&parts.headers, &[JSON])?;
    let source = caller.body_source(principal.as_ref());
    let under_way = app.bodies.begin_bulk(source)?;
    let raw = body::read(&app, source, raw, HTTP_BULK_BODY_BYTES_MAX).await?;
    let _working = app.bodies.begin_work(raw.len()).await;
    let Object(bulk): Object<BulkBody> = body::from_json(&raw)?;
    let body_permit = raw.into_permit();
    let once = read_idempotency_key(
        &parts.headers,
        principal.as_ref(),
        caller.address,
        "POST /api/v1/links/bulk",
        &bulk,
    )?;
    let creator = caller.link_caller(principal.as_ref());
    let drafts = bulk
        .links
        .into_iter()
        .map(|Object(new)| LinkDraft::from(new));
    let (outcomes, quota) = app
        .link_operations()
        .create_links(creator, drafts.collect(), once)
        .await?;
    let replayed = outcomes.iter().any(|outcome| match outcome {
        Ok(created) => created.replayed,
        Err(error) => matches!(error, LinkError::CreatedAndGone(_)),
    });
    let asker = principal
        .as_ref()
        .map_or(OwnerId::ANONYMOUS, |known| known.user);
    let may_read = principal
        .as_ref()
        .is_none_or(|principal| principal.may(Scope::Read));
    let mut response = Json(bulk_results(&app, asker, outcomes, may_read).await?).into_response();
    if replayed {
        response.headers_mut().insert(REPLAYED, YES);
    }
    rate_limit::note(&mut response, quota.as_ref());
    let held = HeldByAnswer::new(body_permit, under_way);
    response.extensions_mut().insert(held);
    Ok(response)
}

async fn bulk_results(
    app: &App,
    asker: OwnerId,
    outcomes: Vec<Result<Created, LinkError>>,
    may_read: bool,
) -> Result<BulkResultsBody, Problem> {
    let replayed = outcomes.iter().flatten().filter(|made| made.replayed);
    let replayed: Vec<Link> = replayed.map(|made| made.link.clone()).collect();
    let mut replayed = match replayed.is_empty() {
        true => Vec::new(),
        false => link_view::view(app, asker, &replayed).await?,
    }
    .into_iter();
    let mut body_of = |created: &Created| {
        let known = created.replayed.then(|| replayed.next()).flatten();
        known.unwrap_or_else(|| link_view::view_new(app, &created.link))
    };
    let results: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| match outcome {
            Ok(created) if created.replayed && !may_read => BulkResult::Unread {
                status: StatusCode::NO_CONTENT.as_u16(),
                key: created.link.id.key.to_string(),
            },
            Ok(created) => BulkResult::Created {
                status: StatusCode::CREATED.as_u16(),
                link: Box::new(body_of(&created)),
            },
            Err(error) => {
                let problem = Problem::from(error).body();
                BulkResult::Failed {
                    status: problem.status,
                    problem,
                }
            }
        })
        .collect();
    let created = results
        .iter()
        .filter(|result| !matches!(result, BulkResult::Failed { .. }))
        .count();
    Ok(BulkResultsBody {
        created,
        failed: results.len() - created,
        results,
    })
}
