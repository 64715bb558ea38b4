//! `/api/v1/keys`: API keys.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{AccountError, NewKey, Principal};
use curt_core::{Allowance, OwnerId, Scope, Scopes};
use http::{StatusCode, Uri};

use super::body;
use super::documented::{AdminListProblems, EndProblems, NewKeyProblems, RotateProblems};
use super::key_body::{IssuedBody, KeyBody, KeysBody, NewKeyBody, RotateBody};
use super::names::{UserId, rule};
use super::paging::{self, PageParams, PageRequest};
use super::query;
use crate::caller::{Caller, check_scope};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

const OVERLAP_DEFAULT: Duration = Duration::from_secs(24 * 3_600);
const OVERLAP_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// List API keys
///
/// Your own, ended ones included, oldest first, page by page. Administrators may ask for somebody else's.
#[utoipa::path(
    get,
    path = "/api/v1/keys",
    tag = "keys",
    operation_id = "listKeys",
    params(
        ("user_id" = inline(Option<UserId>), Query, nullable = false, description = "Whose keys; you unless said otherwise."),
        PageParams,
    ),
    responses(
        (status = 200, description = "One page of keys.", body = KeysBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        AdminListProblems,
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let names = ["user_id", "cursor", "limit"];
    let [user, cursor, limit] = query::values(uri.query().unwrap_or_default(), names)?;
    let user = whose(&principal, user.as_deref())?;
    let asked = PageRequest::parse(cursor.as_deref(), limit.as_deref())?;
    let api_keys = Arc::clone(&app.accounts.api_keys);
    let reading = async move { api_keys.list(Some(user)).await };
    let mut keys = app.scans.read(principal.user, reading).await??;
    // A user has few of them, so that all are read.
    keys.retain(|key| {
        asked
            .after
            .is_none_or(|after| u64::from(key.number.0) > after)
    });
    let next = asked.cut(&mut keys, |key| key.number.0.into());
    let now = app.clock.now();
    let body = KeysBody {
        keys: keys.iter().map(|key| KeyBody::new(key, now)).collect(),
        next,
    };
    paging::page(&uri, body.next.as_deref(), &body)
}

/// Make an API key
///
/// The answer holds the key itself, this once. A key that is made with an API key can do no more than that one, ends
/// with it at the latest, counts into its limits, and is revoked with it.
#[utoipa::path(
    post,
    path = "/api/v1/keys",
    tag = "keys",
    operation_id = "createKey",
    params(("user_id" = inline(Option<UserId>), Query, nullable = false,
        description = "Whose key it is to be; for administrators. You unless said otherwise.")),
    request_body(content = NewKeyBody, content_type = "application/json"),
    responses((status = 201, description = "The key was made.", body = IssuedBody), NewKeyProblems),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let [user] = query::values(uri.query().unwrap_or_default(), ["user_id"])?;
    let user = whose(&principal, user.as_deref())?;
    let new: NewKeyBody = body::json(&app, caller.body_source(Some(&principal)), request).await?;
    let allowance = Allowance {
        creations: rule("creations", new.creations)?,
        redirections: rule("redirections", new.redirections)?,
    };
    if allowance != Allowance::default() {
        check_scope(&principal, Scope::Admin)?;
    }
    let scopes = match new.scopes {
        Some(names) => names.into_iter().map(Scope::from).collect(),
        None => usual(principal.scopes),
    };
    let new = NewKey {
        user,
        name: new.name,
        scopes,
        allowance,
        expires_at: new.expires_at.map(|at| at.0),
    };
    let origin = caller.origin().by(principal.user);
    let now = app.clock.now();
    let may_read = principal.may(Scope::Read);
    let issued = run_to_completion(async move {
        let api_keys = &app.accounts.api_keys;
        let issued = api_keys.issue(new, &principal, origin).await?;
        if issued.key.allowance.redirections.is_some() {
            app.refresh_limited().await?;
        }
        Ok::<_, AccountError>(issued)
    });
    let body = IssuedBody::new(issued.await?, may_read.then_some(now));
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

/// Replace an API key
///
/// The new key has the name, scopes and limits of the old one, which goes on for the time of the overlap. With a
/// session, it has the old one's length of life again; with an API key, it ends when the old one would have ended. An
/// API key replaces itself and the keys that it made, and is the parent of what it makes. The answer holds the new key
/// itself, this once. A key is replaced only by somebody who may do all that it may.
#[utoipa::path(
    post,
    path = "/api/v1/keys/{prefix}/rotate",
    tag = "keys",
    operation_id = "rotateKey",
    params(("prefix" = String, Path, description = "The public part of the key.", pattern = "^[A-Za-z0-9]{8}$", example = "k3J9xQ2a")),
    request_body(content = Option<RotateBody>, content_type = "application/json"),
    responses((status = 201, description = "The new key was made.", body = IssuedBody), RotateProblems),
)]
pub(crate) async fn rotate(
    State(app): State<Arc<App>>,
    prefix: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let prefix = known(prefix)?;
    let asked: RotateBody =
        body::json_or_default(&app, caller.body_source(Some(&principal)), request).await?;
    let overlap = overlap(asked.overlap_seconds)?;
    let whose = reach(&principal);
    covers(&app, &principal, whose, &prefix).await?;
    let origin = caller.origin().by(principal.user);
    let now = app.clock.now();
    let may_read = principal.may(Scope::Read);
    let issued = run_to_completion(async move {
        let api_keys = &app.accounts.api_keys;
        let issued = api_keys
            .rotate(&prefix, whose, overlap, &principal, origin)
            .await?;
        if issued.key.allowance.redirections.is_some() {
            app.refresh_limited().await?;
        }
        Ok::<_, AccountError>(issued)
    });
    let body = IssuedBody::new(issued.await?, may_read.then_some(now));
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

/// Revoke an API key
///
/// It counts for nothing within a second, everywhere, and neither does any key that was made with it, or with one of
/// those. A key cannot revoke the one that it was made with.
#[utoipa::path(
    delete,
    path = "/api/v1/keys/{prefix}",
    tag = "keys",
    operation_id = "revokeKey",
    params(("prefix" = String, Path, description = "The public part of the key.", pattern = "^[A-Za-z0-9]{8}$", example = "k3J9xQ2a")),
    responses((status = 204, description = "The key is revoked."), EndProblems),
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    prefix: Result<Path<String>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let prefix = known(prefix)?;
    let whose = reach(&principal);
    let origin = caller.origin().by(principal.user);
    let api_keys = Arc::clone(&app.accounts.api_keys);
    run_to_completion(async move { api_keys.revoke(&prefix, whose, &principal, origin).await })
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn known(prefix: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    prefix
        .map(|Path(prefix)| prefix)
        .map_err(|_| Problem::new(ProblemCode::NotFound))
}

/// Whose keys a request may touch; `None` is anybody's.
fn reach(principal: &Principal) -> Option<OwnerId> {
    (!principal.may(Scope::Admin)).then_some(principal.user)
}

/// Whom the query names. Somebody else is for administrators.
fn whose(principal: &Principal, user: Option<&str>) -> Result<OwnerId, Problem> {
    match query::user("user_id", user)? {
        Some(user) if user.0 != principal.user => {
            check_scope(principal, Scope::Admin)?;
            Ok(user.0)
        }
        _ => Ok(principal.user),
    }
}

fn usual(scopes: Scopes) -> Scopes {
    scopes
        .iter()
        .filter(|scope| *scope != Scope::Admin)
        .collect()
}

fn overlap(seconds: Option<u64>) -> Result<Duration, Problem> {
    let overlap = seconds.map_or(OVERLAP_DEFAULT, Duration::from_secs);
    if overlap > OVERLAP_MAX {
        let message = format!("Must be a number from 0 to {}.", OVERLAP_MAX.as_secs());
        return Err(Problem::invalid_field("overlap_seconds", "range", message));
    }
    Ok(overlap)
}

/// A successor is as strong as its predecessor: whoever may do less must not get hold of it.
async fn covers(
    app: &App,
    principal: &Principal,
    whose: Option<OwnerId>,
    prefix: &str,
) -> Result<(), Problem> {
    let key = app.accounts.api_keys.get(prefix, whose).await?;
    key.scopes
        .iter()
        .try_for_each(|scope| check_scope(principal, scope))
}
