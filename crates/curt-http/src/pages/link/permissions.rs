//! Who may follow a private link, beside its owner.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use curt_accounts::{AccountError, UserRef};
use curt_core::ports::PermissionId;
use curt_core::{Link, Scope};

use super::edit::refuse_permission;
use super::{PostedForm, posted_about};
use crate::caller::Caller;
use crate::pages::form::see_other;
use crate::pages::turned::Turned;
use crate::pages::visitor::Visitor;
use crate::pages::{PageTime, links};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

pub(super) struct PermissionRow {
    pub(super) id: u64,
    pub(super) email: String,
    pub(super) since: PageTime,
}

pub(super) async fn rows(
    app: &App,
    visitor: &Visitor,
    link: &Link,
) -> Result<Vec<PermissionRow>, Problem> {
    let permissions = Arc::clone(&app.accounts.permissions);
    let (id, generation) = (link.id.clone(), link.revision.generation);
    let reading = async move { permissions.list(&id, generation).await };
    let granted = app.scans.read(visitor.principal.user, reading).await??;
    let row = |granted: &curt_accounts::Granted| PermissionRow {
        id: granted.permission.id.0,
        email: granted.user.email.to_string(),
        since: granted.permission.granted_at.into(),
    };
    Ok(granted.iter().map(row).collect())
}

pub(super) async fn grant(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let posted = posted_about(&app, &caller, key, request, Scope::Manage).await?;
    let PostedForm {
        visitor,
        link,
        form,
    } = posted;
    let permissions = Arc::clone(&app.accounts.permissions);
    let origin = caller.origin().by(visitor.principal.user);
    let (id, generation) = (link.id.clone(), link.revision.generation);
    let email = form.text("email");
    let whom = email.clone();
    let granted = run_to_completion(async move {
        let whom = UserRef::Email(&whom);
        let granted = permissions.grant(&id, generation, whom, origin).await;
        granted.map_err(|failure| match failure {
            AccountError::NotFound => {
                let message = "Nobody here has this email.";
                Problem::invalid_field("email", "unknown_user", message)
            }
            other => other.into(),
        })
    });
    match granted.await {
        Ok(_) => Ok(back(&link, "granted")),
        Err(problem) => Ok(refuse_permission(&app, &visitor, &link, email, problem).await?),
    }
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let posted = posted_about(&app, &caller, key, request, Scope::Manage).await?;
    let PostedForm {
        visitor,
        link,
        form,
    } = posted;
    let id = form.text("permission").parse().map(PermissionId);
    let id = id.map_err(|_| Problem::new(ProblemCode::NotFound))?;
    let permissions = Arc::clone(&app.accounts.permissions);
    let origin = caller.origin().by(visitor.principal.user);
    let of = link.id.clone();
    run_to_completion(async move { permissions.revoke(&of, id, origin).await }).await?;
    Ok(back(&link, "revoked"))
}

fn back(link: &Link, done: &str) -> Response {
    see_other(&format!(
        "{}/{}/edit?done={done}#permissions",
        links::PATH,
        link.id.key
    ))
}
