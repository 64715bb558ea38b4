//! `/api/v1/tags`: the tags of links.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::Principal;
use curt_core::Scope;
use curt_links::TagReplacement;
use http::Uri;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body;
use super::documented::{RemoveTagProblems, RenameTagProblems, TagsProblems};
use super::query;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

/// The tags of your links.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Tags)]
pub(crate) struct TagsBody {
    /// In the order of their names; at most 1,000.
    tags: Vec<TagBody>,
    /// How many links were read for it, the newest first; at most 5,000.
    links_read: u64,
    /// Whether these are all links and all tags.
    is_complete: bool,
}

/// One tag.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Tag)]
pub(crate) struct TagBody {
    #[schema(example = "spring")]
    tag: String,
    /// How many links carry it.
    #[schema(example = 12)]
    links: u64,
}

/// What a tag is to be called.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TagChanges)]
pub(crate) struct RenameBody {
    /// Kept in lower case, with hyphens for spaces. One that links have already: the two become one.
    #[schema(min_length = 1, max_length = 64, example = "summer")]
    name: String,
}

/// What became of a tag.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TagReplacement)]
pub(crate) struct ReplacementBody {
    /// How many links were changed.
    changed: u64,
    /// Whether no link carries the tag any more. Otherwise send the same request again: one changes at most 1,000 links.
    is_complete: bool,
}

impl From<TagReplacement> for ReplacementBody {
    fn from(done: TagReplacement) -> Self {
        Self {
            changed: done.changed,
            is_complete: done.is_complete,
        }
    }
}

/// List tags
///
/// The tags of your links, with how many links carry each. How often these were followed is told by `/api/v1/stats?tag=`.
#[utoipa::path(
    get,
    path = "/api/v1/tags",
    tag = "tags",
    operation_id = "listTags",
    responses((status = 200, description = "The tags.", body = TagsBody), TagsProblems),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let [] = query::values(uri.query().unwrap_or_default(), [])?;
    let (links, owner) = (Arc::clone(&app.links), principal.user);
    let counting = async move { links.tag_counts(owner).await };
    let counts = app.scans.read(owner, counting).await??;
    let tags = counts.tags.into_iter().map(|(tag, links)| TagBody {
        tag: tag.into(),
        links,
    });
    let body = TagsBody {
        tags: tags.collect(),
        links_read: counts.links_read,
        is_complete: counts.is_complete,
    };
    Ok(Json(body).into_response())
}

/// Rename or merge a tag
///
/// Of your links. Clicks that were counted before stay with the old name. Deleted links keep it.
#[utoipa::path(
    patch,
    path = "/api/v1/tags/{tag}",
    tag = "tags",
    operation_id = "renameTag",
    params(("tag" = String, Path, description = "The tag.", max_length = 64, example = "spring")),
    request_body(content = RenameBody, content_type = "application/json"),
    responses((status = 200, description = "What became of it.", body = ReplacementBody), RenameTagProblems),
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    tag: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let source = caller.body_source(Some(&principal));
    let asked: RenameBody = body::json(&app, source, request).await?;
    let replaced = replace(&app, &caller, &principal, known_tag(tag)?, Some(asked.name)).await;
    Ok(Json(ReplacementBody::from(replaced?)).into_response())
}

/// Remove a tag
///
/// Takes it off your links; the links stay.
#[utoipa::path(
    delete,
    path = "/api/v1/tags/{tag}",
    tag = "tags",
    operation_id = "removeTag",
    params(("tag" = String, Path, description = "The tag.", max_length = 64, example = "spring")),
    responses((status = 200, description = "What became of it.", body = ReplacementBody), RemoveTagProblems),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    tag: Result<Path<String>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let replaced = replace(&app, &caller, &principal, known_tag(tag)?, None).await?;
    Ok(Json(ReplacementBody::from(replaced)).into_response())
}

/// Replaces a tag of the principal's own links, to the end.
pub(crate) async fn replace(
    app: &Arc<App>,
    caller: &Caller,
    principal: &Principal,
    tag: String,
    with: Option<String>,
) -> Result<TagReplacement, Problem> {
    let (app, caller, principal) = (Arc::clone(app), caller.clone(), principal.clone());
    run_to_completion(async move {
        let asker = caller.link_caller(Some(&principal));
        let operations = app.link_operations();
        operations
            .replace_tag(asker, principal.user, &tag, with.as_deref())
            .await
    })
    .await
}

/// A path that is not UTF-8 cannot name a tag.
fn known_tag(tag: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let Path(tag) = tag.map_err(|_| Problem::new(ProblemCode::NotFound))?;
    Ok(tag)
}
