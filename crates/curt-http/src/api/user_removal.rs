//! `DELETE /api/v1/users/{id}`: the end of an account.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use curt_core::Scope;
use curt_links::{LinksOfLeaver, UserRemovalError};
use http::{StatusCode, Uri};

use super::documented::RemoveUserProblems;
use super::names::UserId;
use super::query;
use super::users::whom;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;
use crate::tasks::run_to_completion;

/// Remove a user
///
/// For administrators, who cannot remove themselves. Their sessions and API keys end; their links go to another user or
/// are deleted, and one of the two must be said if they have any. A request that broke off leaves a disabled user, and
/// can be repeated.
#[utoipa::path(
    delete,
    path = "/api/v1/users/{id}",
    tag = "users",
    operation_id = "removeUser",
    params(
        ("id" = String, Path, description = "The user's id.", pattern = "^(me|[1-9][0-9]{0,19})$", example = "17"),
        ("links_to" = inline(Option<UserId>), Query, nullable = false, description = "Who gets their links."),
        ("delete_links" = Option<bool>, Query, nullable = false, description = "Whether their links are deleted instead.",
            example = false),
    ),
    responses((status = 204, description = "The user is gone."), RemoveUserProblems),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let id = whom(&principal, id)?;
    let links = links(uri.query().unwrap_or_default())?;
    if id == principal.user {
        let why = "Administrators cannot do this to themselves: ask another one.";
        return Err(Problem::invalid_field("id", "self", why));
    }
    let origin = caller.origin().by(principal.user);
    run_to_completion(async move {
        let removed = app.link_operations().remove_user(id, links, origin).await;
        app.refresh_limited().await?;
        removed.map_err(refused)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn links(text: &str) -> Result<Option<LinksOfLeaver>, Problem> {
    let [heir, deletes] = query::values(text, ["links_to", "delete_links"])?;
    let deletes = match deletes.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            let why = "Must be true or false.";
            return Err(Problem::invalid_field("delete_links", "value", why));
        }
    };
    match (query::user("links_to", heir.as_deref())?, deletes) {
        (Some(_), true) => {
            let why = "Links go to another user or are deleted: name one of the two.";
            Err(Problem::invalid_field("delete_links", "conflict", why))
        }
        (Some(heir), false) => Ok(Some(LinksOfLeaver::HandOver(heir.0))),
        (None, true) => Ok(Some(LinksOfLeaver::Delete)),
        (None, false) => Ok(None),
    }
}

pub(crate) fn refused(error: UserRemovalError) -> Problem {
    match error {
        UserRemovalError::Undecided => {
            let why = "The user has links: name who gets them, or set delete_links=true.";
            Problem::invalid_field("links_to", "missing", why)
        }
        UserRemovalError::NoHeir => {
            let why = "Links go to another user, who is not disabled.";
            Problem::invalid_field("links_to", "unknown_user", why)
        }
        UserRemovalError::Account(error) => error.into(),
        UserRemovalError::Link(error) => error.into(),
    }
}
