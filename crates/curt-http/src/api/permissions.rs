//! `/api/v1/links/{key}/permissions`: who may follow a private link, beside its owner.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{AccountError, Granted, Principal, UserRef};
use curt_core::ports::PermissionId;
use curt_core::{Link, OwnerId, Scope};
use curt_links::Who;
use http::header::LOCATION;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body;
use super::documented::{DeletePermissionProblems, GrantProblems, ListPermissionsProblems};
use super::links::{PATH, known_key};
use super::names::UserId;
use super::paging::{self, PageParams, PageRequest};
use super::query;
use super::readable::if_readable;
use super::time::Rfc3339;
use crate::caller::{Caller, check_scope};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

/// Who is to get a permission: one of the two.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPermission)]
pub(crate) struct GrantBody {
    #[schema(max_length = 254, example = "bob@example.com")]
    email: Option<String>,
    /// For administrators: with the permission, the owner of the link gets to know the user's email.
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    user_id: Option<String>,
}

/// That somebody may follow a link.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Permission)]
pub(crate) struct PermissionBody {
    #[schema(pattern = "^[0-9]{1,20}$", example = "17")]
    id: String,
    user_id: UserId,
    #[schema(example = "bob@example.com")]
    email: String,
    granted_at: Rfc3339,
}

impl PermissionBody {
    fn new(granted: &Granted) -> Self {
        Self {
            id: granted.permission.id.0.to_string(),
            user_id: UserId(granted.user.id),
            email: granted.user.email.to_string(),
            granted_at: Rfc3339(granted.permission.granted_at),
        }
    }
}

/// One page of a link's permissions.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PermissionPage)]
pub(crate) struct PermissionsBody {
    /// Oldest first.
    permissions: Vec<PermissionBody>,
    /// The cursor of the next page; `null` on the last one.
    #[schema(required = true, example = json!(null))]
    next: Option<String>,
}

/// List a link's permissions
///
/// Everybody who may follow the link while it is private, beside its owner.
#[utoipa::path(
    get,
    path = "/api/v1/links/{key}/permissions",
    tag = "permissions",
    operation_id = "listPermissions",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        PageParams,
    ),
    responses(
        (status = 200, description = "One page of permissions.", body = PermissionsBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        ListPermissionsProblems,
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let [cursor, limit] = query::values(uri.query().unwrap_or_default(), ["cursor", "limit"])?;
    let asked = PageRequest::parse(cursor.as_deref(), limit.as_deref())?;
    let link = link(&app, &principal, &known_key(key)?).await?;
    let permissions = Arc::clone(&app.accounts.permissions);
    let reading = async move { permissions.list(&link.id, link.revision.generation).await };
    let mut granted = app.scans.read(principal.user, reading).await??;
    granted.retain(|granted| {
        asked
            .after
            .is_none_or(|after| granted.permission.id.0 > after)
    });
    let next = asked.cut(&mut granted, |granted| granted.permission.id.0);
    let body = PermissionsBody {
        permissions: granted.iter().map(PermissionBody::new).collect(),
        next,
    };
    paging::page(&uri, body.next.as_deref(), &body)
}

/// Let somebody follow a link
///
/// Somebody with an account here. Whoever may already keeps the permission that they have.
#[utoipa::path(
    post,
    path = "/api/v1/links/{key}/permissions",
    tag = "permissions",
    operation_id = "grantPermission",
    params(("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale")),
    request_body(content = GrantBody, content_type = "application/json"),
    responses(
        (status = 201, description = "They may follow the link.", body = PermissionBody,
            headers(("Location" = String, description = "The permission as a resource of the API."))),
        (status = 204, description = "They may follow the link; without the scope `read` the permission is not shown.",
            headers(("Location" = String, description = "The permission as a resource of the API."))),
        GrantProblems,
    ),
)]
pub(crate) async fn grant(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let asked: GrantBody = body::json(&app, caller.body_source(Some(&principal)), request).await?;
    let key = known_key(key)?;
    let link = link(&app, &principal, &key).await?;
    let permissions = Arc::clone(&app.accounts.permissions);
    let origin = caller.origin().by(principal.user);
    let (id, generation) = (link.id, link.revision.generation);
    let named = named(&principal, asked)?;
    let granted = run_to_completion(async move {
        let whom = match &named {
            Named::Email(email) => UserRef::Email(email),
            Named::Id(id) => UserRef::Id(*id),
        };
        let granted = permissions.grant(&id, generation, whom, origin).await;
        granted.map_err(|failure| match failure {
            AccountError::NotFound => unknown(&named),
            other => other.into(),
        })
    });
    let body = PermissionBody::new(&granted.await?);
    let location = format!("{PATH}/{key}/permissions/{}", body.id);
    let answer = (StatusCode::CREATED, [(LOCATION, location)], Json(body));
    Ok(if_readable(&principal, answer.into_response()))
}

/// Take a permission back
///
/// It counts for nothing within a second, everywhere.
#[utoipa::path(
    delete,
    path = "/api/v1/links/{key}/permissions/{id}",
    tag = "permissions",
    operation_id = "revokePermission",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        ("id" = String, Path, description = "The permission's id.", pattern = "^[0-9]{1,20}$", example = "17"),
    ),
    responses((status = 204, description = "The permission is gone."), DeletePermissionProblems),
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let Path((key, id)) = path.map_err(|_| Problem::new(ProblemCode::LinkNotFound))?;
    let link = link(&app, &principal, &key).await?;
    let id = query::number(&id).ok_or_else(|| Problem::new(ProblemCode::NotFound))?;
    let origin = caller.origin().by(principal.user);
    let permissions = Arc::clone(&app.accounts.permissions);
    run_to_completion(async move { permissions.revoke(&link.id, PermissionId(id), origin).await })
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

enum Named {
    Email(String),
    Id(OwnerId),
}

fn named(principal: &Principal, asked: GrantBody) -> Result<Named, Problem> {
    match (asked.email, asked.user_id) {
        (Some(email), None) => Ok(Named::Email(email)),
        (None, Some(id)) => {
            check_scope(principal, Scope::Admin)?;
            let id = UserId::parse(&id).map(|id| Named::Id(id.0));
            let wrong = || Problem::invalid_field("user_id", "value", "Must be the id of a user.");
            id.ok_or_else(wrong)
        }
        _ => {
            let why = "Name one person, by email or by user_id.";
            Err(Problem::invalid_field("email", "value", why))
        }
    }
}

fn unknown(named: &Named) -> Problem {
    let field = match named {
        Named::Email(_) => "email",
        Named::Id(_) => "user_id",
    };
    Problem::invalid_field(field, "unknown_user", "Nobody here has it.")
}

async fn link(app: &App, principal: &Principal, key: &str) -> Result<Link, Problem> {
    let who = Who::reachable_by(principal);
    Ok(app.links.get(who, key).await?)
}
