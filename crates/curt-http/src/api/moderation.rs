//! Switching links off and on, whoever owns them.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use curt_core::{LinkState, Scope};

use super::documented::SwitchProblems;
use super::link_body::LinkBody;
use super::link_view;
use super::links::known_key;
use super::readable::if_readable;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;
use crate::tasks::run_to_completion;

/// Switch a link off
///
/// For administrators. Visitors get 410 within a second, everywhere, until the link is switched on again.
#[utoipa::path(
    post,
    path = "/api/v1/links/{key}/disable",
    tag = "links",
    operation_id = "disableLink",
    params(("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale")),
    responses(
        (status = 200, description = "The link as it is now.", body = LinkBody,
            headers(("ETag" = String, description = "The link's new revision."))),
        (status = 204, description = "The link is switched; without the scope `read` it is not shown.",
            headers(("ETag" = String, description = "The link's new revision."))),
        SwitchProblems,
    ),
)]
pub(crate) async fn disable(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    switch(app, key, caller, LinkState::Disabled).await
}

/// Switch a link on again
///
/// For administrators.
#[utoipa::path(
    post,
    path = "/api/v1/links/{key}/enable",
    tag = "links",
    operation_id = "enableLink",
    params(("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale")),
    responses(
        (status = 200, description = "The link as it is now.", body = LinkBody,
            headers(("ETag" = String, description = "The link's new revision."))),
        (status = 204, description = "The link is switched; without the scope `read` it is not shown.",
            headers(("ETag" = String, description = "The link's new revision."))),
        SwitchProblems,
    ),
)]
pub(crate) async fn enable(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    switch(app, key, caller, LinkState::Active).await
}

async fn switch(
    app: Arc<App>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    state: LinkState,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let key = known_key(key)?;
    let (working, switcher) = (Arc::clone(&app), principal.clone());
    let link = run_to_completion(async move {
        let operations = working.link_operations();
        let caller = caller.link_caller(Some(&switcher));
        operations.switch_link(caller, &key, state).await
    });
    let answer = link_view::answer(&app, principal.user, &link.await?).await?;
    Ok(if_readable(&principal, answer))
}
