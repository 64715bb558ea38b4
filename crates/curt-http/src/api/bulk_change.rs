//! `PATCH /api/v1/links/bulk`: one change to many links.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::Principal;
use curt_core::limits::{BULK_CHANGES_MAX, TAGS_MAX};
use curt_core::{LinkState, Scope};
use curt_links::{Expiry, LinkError, LinksChange, TagChange, Who};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::{self, bounded_list, bounded_list_or_null, present};
use super::documented::BulkChangeProblems;
use super::time::Rfc3339;
use crate::caller::{Caller, check_scope};
use crate::problem::{Problem, ProblemBody};
use crate::state::App;
use crate::tasks::run_to_completion;

// The schemas below can hold only literal numbers.
const _: () = assert!(BULK_CHANGES_MAX == 500 && TAGS_MAX == 32);

/// What is to become of the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BulkChangeName {
    /// Adds `add_tags` and removes `remove_tags`.
    Tag,
    /// Sets `expires_at`.
    Expire,
    Delete,
    Restore,
    /// For administrators.
    Disable,
    /// For administrators.
    Enable,
}

/// One change to many links. Each one succeeds or fails on its own.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinksChange)]
pub(crate) struct BulkChangeBody {
    #[serde(deserialize_with = "bounded_list::<BULK_CHANGES_MAX, _, _>")]
    #[schema(min_items = 1, max_items = 500, example = json!(["spring-sale", "summer-sale"]))]
    keys: Vec<String>,
    change: BulkChangeName,
    /// With `tag`, and only then.
    #[serde(default, deserialize_with = "bounded_list_or_null::<TAGS_MAX, _, _>")]
    #[schema(max_items = 32, example = json!(["sale"]))]
    add_tags: Option<Vec<String>>,
    /// With `tag`, and only then.
    #[serde(default, deserialize_with = "bounded_list_or_null::<TAGS_MAX, _, _>")]
    #[schema(max_items = 32, example = json!([]))]
    remove_tags: Option<Vec<String>>,
    /// With `expire`, and only then. `null`: never.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Rfc3339>, example = json!(null))]
    expires_at: Option<Option<Rfc3339>>,
}

/// What became of each link, in the order of the request.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinksChangeResults)]
pub(crate) struct BulkChangeResultsBody {
    /// How many links are as wanted now.
    changed: usize,
    /// How many were refused.
    failed: usize,
    results: Vec<BulkChangeResult>,
}

/// What became of one link.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinksChangeResult)]
pub(crate) struct BulkChangeResult {
    #[schema(example = "spring-sale")]
    key: String,
    #[schema(minimum = 200, maximum = 599, example = 200)]
    status: u16,
    /// Why it was refused.
    #[schema(required = true)]
    problem: Option<ProblemBody>,
}

/// Change many links
///
/// One change to up to 500 links: tags, expiry, deletion, restoration, and for administrators switching off and on. The
/// answer has one result per key, in order; a link that is refused does not hold up the others. What was done stands in the
/// audit log as one entry.
#[utoipa::path(
    patch,
    path = "/api/v1/links/bulk",
    tag = "links",
    operation_id = "changeLinks",
    request_body(content = BulkChangeBody, content_type = "application/json"),
    responses(
        (status = 200, description = "What became of each link.", body = BulkChangeResultsBody),
        BulkChangeProblems,
    ),
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let source = caller.body_source(Some(&principal));
    let asked: BulkChangeBody = body::json(&app, source, request).await?;
    let change = asked.read()?;
    let keys = asked.keys;
    let outcomes = change_links(&app, &caller, &principal, keys.clone(), change).await?;
    let results: Vec<BulkChangeResult> = keys
        .into_iter()
        .zip(outcomes)
        .map(|(key, outcome)| {
            let problem = outcome.err().map(|error| Problem::from(error).body());
            let status = problem.as_ref().map_or(200, |problem| problem.status);
            BulkChangeResult {
                key,
                status,
                problem,
            }
        })
        .collect();
    let failed = results.iter().filter(|result| result.problem.is_some());
    let failed = failed.count();
    let body = BulkChangeResultsBody {
        changed: results.len() - failed,
        failed,
        results,
    };
    Ok(Json(body).into_response())
}

/// Changes the links for whoever asks, to the end.
pub(crate) async fn change_links(
    app: &Arc<App>,
    caller: &Caller,
    principal: &Principal,
    keys: Vec<String>,
    change: LinksChange,
) -> Result<Vec<Result<(), LinkError>>, Problem> {
    if matches!(change, LinksChange::Switch(_)) {
        check_scope(principal, Scope::Admin)?;
    }
    let (app, caller, principal) = (Arc::clone(app), caller.clone(), principal.clone());
    run_to_completion(async move {
        let who = Who::reachable_by(&principal);
        let asker = caller.link_caller(Some(&principal));
        let operations = app.link_operations();
        operations.change_links(asker, who, &keys, &change).await
    })
    .await
}

impl BulkChangeBody {
    /// Reads what is to be done. What goes with another change is refused: it would be ignored.
    fn read(&self) -> Result<LinksChange, Problem> {
        let has_tags = self.add_tags.is_some() || self.remove_tags.is_some();
        if has_tags && self.change != BulkChangeName::Tag {
            let message = "Tags go only with the change 'tag'.";
            return Err(Problem::invalid_field("add_tags", "unused", message));
        }
        if self.expires_at.is_some() && self.change != BulkChangeName::Expire {
            let message = "An expiry goes only with the change 'expire'.";
            return Err(Problem::invalid_field("expires_at", "unused", message));
        }
        match self.change {
            BulkChangeName::Tag if !has_tags => {
                let message = "Name tags to add or to remove.";
                Err(Problem::invalid_field("add_tags", "missing", message))
            }
            BulkChangeName::Tag => Ok(LinksChange::Tag(TagChange {
                add: self.add_tags.clone().unwrap_or_default(),
                remove: self.remove_tags.clone().unwrap_or_default(),
            })),
            BulkChangeName::Expire => match self.expires_at {
                None => {
                    let message = "Say when the links are to expire, or null for never.";
                    Err(Problem::invalid_field("expires_at", "missing", message))
                }
                Some(None) => Ok(LinksChange::Expire(Expiry::Never)),
                Some(Some(at)) => Ok(LinksChange::Expire(Expiry::At(at.0))),
            },
            BulkChangeName::Delete => Ok(LinksChange::Delete),
            BulkChangeName::Restore => Ok(LinksChange::Restore),
            BulkChangeName::Disable => Ok(LinksChange::Switch(LinkState::Disabled)),
            BulkChangeName::Enable => Ok(LinksChange::Switch(LinkState::Active)),
        }
    }
}
