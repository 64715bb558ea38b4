//! `/api/v1/users`: people and their accounts.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{AccountError, Principal, UserEdit, UserRef};
use curt_core::limits::PASSWORD_BYTES_MAX;
use curt_core::{OwnerId, Role, Scope, User};
use http::header::LOCATION;
use http::{StatusCode, Uri};

use super::body;
use super::documented::{
    AdminListProblems, NewUserProblems, PasswordProblems, ReadUserProblems, UserChangeProblems,
};
use super::names::UserId;
use super::paging::{self, PageParams, PageRequest};
use super::query;
use super::readable::if_readable;
use super::user_body::{EditUserBody, NewUserBody, PasswordBody, UserBody, UsersBody};
use crate::caller::{Caller, check_scope, scope_missing};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

const PATH: &str = "/api/v1/users";
const ME: &str = "me";

/// Make an account
///
/// For yourself, where signing up is open or with an invitation; tries are limited per address.
/// Administrators make accounts for others, of any role.
#[utoipa::path(
    post,
    path = "/api/v1/users",
    tag = "users",
    operation_id = "createUser",
    security((), ("bearer" = []), ("header" = []), ("session" = [])),
    request_body(content = NewUserBody, content_type = "application/json"),
    responses(
        (status = 201, description = "The account was made.", body = UserBody,
            headers(("Location" = String, description = "The user as a resource of the API."))),
        NewUserProblems,
    ),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.principal(&app, None).await?;
    let new: NewUserBody =
        body::json(&app, caller.body_source(principal.as_ref()), request).await?;
    let user = match principal {
        Some(principal) if principal.may(Scope::Admin) => {
            add(&app, &caller, &principal, new).await?
        }
        Some(_) if new.role.is_some() => return Err(scope_missing(Scope::Admin)),
        None if new.role.is_some() => return Err(Problem::new(ProblemCode::CredentialsMissing)),
        _ => sign_up(&app, &caller, new).await?,
    };
    let body = Json(UserBody::new(&user));
    let location = format!("{PATH}/{}", user.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], body).into_response())
}

async fn add(
    app: &App,
    caller: &Caller,
    principal: &Principal,
    new: NewUserBody,
) -> Result<User, Problem> {
    if new.invite.is_some() {
        let why = "An administrator needs no invitation to make an account.";
        return Err(Problem::invalid_field("invite", "unused", why));
    }
    let users = Arc::clone(&app.accounts.users);
    let origin = caller.origin().by(principal.user);
    let role = new.role.map_or(Role::Member, Role::from);
    let new_user = new.into_new_user();
    run_to_completion(async move { users.add(&new_user, role, origin).await }).await
}

async fn sign_up(app: &App, caller: &Caller, new: NewUserBody) -> Result<User, Problem> {
    caller.refuse_other_sites()?;
    caller.may_sign_up(app).await?;
    let users = Arc::clone(&app.accounts.users);
    let origin = caller.origin();
    let invite = new.invite.clone();
    let new_user = new.into_new_user();
    run_to_completion(async move { users.sign_up(&new_user, invite.as_deref(), origin).await })
        .await
}

/// List users
///
/// Everybody, page by page; for administrators.
#[utoipa::path(
    get,
    path = "/api/v1/users",
    tag = "users",
    operation_id = "listUsers",
    params(PageParams),
    responses(
        (status = 200, description = "One page of users.", body = UsersBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        AdminListProblems,
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let [cursor, limit] = query::values(uri.query().unwrap_or_default(), ["cursor", "limit"])?;
    let asked = PageRequest::parse(cursor.as_deref(), limit.as_deref())?;
    let users = Arc::clone(&app.accounts.users);
    let reading = async move {
        let after = asked.after.map(OwnerId);
        users.list(after, asked.read_max()).await
    };
    let mut users = app.scans.read(principal.user, reading).await??;
    let next = asked.cut(&mut users, |user| user.id.0);
    let body = UsersBody {
        users: users.iter().map(UserBody::new).collect(),
        next,
    };
    paging::page(&uri, body.next.as_deref(), &body)
}

/// Read a user
///
/// Yourself, or as an administrator anybody.
#[utoipa::path(
    get,
    path = "/api/v1/users/{id}",
    tag = "users",
    operation_id = "getUser",
    params(("id" = String, Path, description = "The user's id, or `me`.", pattern = "^(me|[1-9][0-9]{0,19})$", example = "me")),
    responses((status = 200, description = "The user.", body = UserBody), ReadUserProblems),
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let id = whom(&principal, id)?;
    let user = app.accounts.users.get(UserRef::Id(id)).await?;
    Ok(Json(UserBody::new(&user)).into_response())
}

/// Edit a user
///
/// A JSON merge patch (RFC 7396): fields that are absent stay, `null` clears. You may change your own names, and with
/// your password your email; administrators may change everything about everybody, but not their own role, and not keep
/// themselves out.
#[utoipa::path(
    patch,
    path = "/api/v1/users/{id}",
    tag = "users",
    operation_id = "editUser",
    params(("id" = String, Path, description = "The user's id, or `me`.", pattern = "^(me|[1-9][0-9]{0,19})$", example = "me")),
    request_body(content(
        (EditUserBody = "application/merge-patch+json"),
        (EditUserBody = "application/json"),
    )),
    responses(
        (status = 200, description = "The user as they are now.", body = UserBody),
        (status = 204, description = "The user is changed; without the scope `read` they are not shown."),
        UserChangeProblems,
    ),
)]
pub(crate) async fn edit(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let id = whom(&principal, id)?;
    let changes: EditUserBody =
        body::merge_patch(&app, caller.body_source(Some(&principal)), request).await?;
    if changes.is_for_administrators() {
        check_scope(&principal, Scope::Admin)?;
    }
    refuse_to_lock_oneself_out(&principal, id, &changes)?;
    check_email(&app, &caller, &principal, id, &changes).await?;
    let (disabled, limited) = (changes.disabled, changes.redirections.is_some());
    let edit = changes.into_edit()?;
    let origin = caller.origin().by(principal.user);
    let user = run_to_completion(async move {
        let users = &app.accounts.users;
        let whom = UserRef::Id(id);
        if edit != UserEdit::default() {
            users.edit(whom, &edit, None, origin).await?;
        }
        let user = match disabled {
            Some(true) => users.disable(whom, origin).await?,
            Some(false) => users.enable(whom, origin).await?,
            None => users.get(whom).await?,
        };
        if limited || disabled.is_some() {
            app.refresh_limited().await?;
        }
        Ok::<_, AccountError>(user)
    });
    let answer = Json(UserBody::new(&user.await?)).into_response();
    Ok(if_readable(&principal, answer))
}

/// Refuses a new email for oneself without the password: it is what one signs in with.
async fn check_email(
    app: &App,
    caller: &Caller,
    principal: &Principal,
    id: OwnerId,
    changes: &EditUserBody,
) -> Result<(), Problem> {
    // Also where it is not needed: it is no password of anybody, and the documented schema says so.
    let password = changes.current_password.as_ref();
    if password.is_some_and(|password| password.reveal().len() > PASSWORD_BYTES_MAX) {
        let why = format!("A password has at most {PASSWORD_BYTES_MAX} bytes.");
        return Err(Problem::invalid_field("current_password", "too_long", why));
    }
    let Some(email) = changes.email.as_deref().filter(|_| id == principal.user) else {
        return Ok(());
    };
    let users = &app.accounts.users;
    if !users.changes_email(id, email).await? {
        return Ok(());
    }
    let Some(password) = password else {
        let why = "Your email is changed with your password.";
        return Err(Problem::invalid_field("current_password", "missing", why));
    };
    caller.check_password(app, id, password.reveal()).await
}

/// The last administrator could not come back.
fn refuse_to_lock_oneself_out(
    principal: &Principal,
    id: OwnerId,
    changes: &EditUserBody,
) -> Result<(), Problem> {
    let refused = |field| {
        let why = "Administrators cannot do this to themselves: ask another one.";
        Err(Problem::invalid_field(field, "self", why))
    };
    match changes {
        _ if id != principal.user => Ok(()),
        changes
            if changes
                .role
                .is_some_and(|role| Role::from(role) != principal.role) =>
        {
            refused("role")
        }
        changes if changes.disabled == Some(true) => refused("disabled"),
        _ => Ok(()),
    }
}

/// Change a password
///
/// Your own, with the old one; wrong tries at that are limited. An administrator sets anybody else's
/// without. All sessions of the user end, but not the one that asks; with `revoke_api_keys` their API keys do too.
#[utoipa::path(
    post,
    path = "/api/v1/users/{id}/password",
    tag = "users",
    operation_id = "changePassword",
    params(("id" = String, Path, description = "The user's id, or `me`.", pattern = "^(me|[1-9][0-9]{0,19})$", example = "me")),
    request_body(content = PasswordBody, content_type = "application/json"),
    responses((status = 204, description = "The new password counts."), PasswordProblems),
)]
pub(crate) async fn change_password(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let id = whom(&principal, id)?;
    let PasswordBody {
        old_password,
        new_password,
        revoke_api_keys,
    } = body::json(&app, caller.body_source(Some(&principal)), request).await?;
    let origin = caller.origin().by(principal.user);
    let services = app.accounts.clone();
    let changed = match old_password {
        Some(old) if id == principal.user => {
            let change = run_to_completion(async move {
                let (old, new) = (old.reveal(), new_password.reveal());
                let keep = principal.session();
                let users = &services.users;
                users.change_password(id, old, new, keep, origin).await?;
                services.revoke_keys_if(revoke_api_keys, id, origin).await
            });
            caller.guess_password(&app, id, change).await
        }
        None if id != principal.user => {
            run_to_completion(async move {
                let users = &services.users;
                let new = new_password.reveal();
                users.set_password(UserRef::Id(id), new, origin).await?;
                services.revoke_keys_if(revoke_api_keys, id, origin).await
            })
            .await
        }
        given => Err(wrong_old_password(given.is_some())),
    };
    changed.map_err(|problem| problem.rename_fields(new_password_name))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn wrong_old_password(given: bool) -> Problem {
    let (code, why) = if given {
        (
            "unused",
            "Nobody else's old password is needed to set a new one.",
        )
    } else {
        ("missing", "Your own password is changed with the old one.")
    };
    Problem::invalid_field("old_password", code, why)
}

fn new_password_name(field: &str) -> Option<&'static str> {
    (field == "password").then_some("new_password")
}

/// Who is meant. Others are nobody's business but the administrators'.
pub(crate) fn whom(
    principal: &Principal,
    path: Result<Path<String>, PathRejection>,
) -> Result<OwnerId, Problem> {
    let absent = || Problem::new(ProblemCode::NotFound);
    let Path(text) = path.map_err(|_| absent())?;
    if text == ME {
        return Ok(principal.user);
    }
    UserId::parse(&text)
        .map(|id| id.0)
        .filter(|id| *id == principal.user || principal.may(Scope::Admin))
        .ok_or_else(absent)
}
