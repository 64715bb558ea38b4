//! `/api/v1/sessions`: signing in and out.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{Principal, SignIn};
use curt_core::Scope;
use curt_core::ports::Session;
use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body;
use super::documented::{EndProblems, ListSessionsProblems, SignInProblems};
use super::secret::Secret;
use super::time::Rfc3339;
use super::user_body::UserBody;
use crate::caller::{Caller, cookie};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

const CURRENT: &str = "current";

/// What somebody shows to come in.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSession)]
pub(crate) struct SignInBody {
    #[schema(max_length = 254, example = "ada@example.com")]
    email: String,
    password: Secret,
}

/// A browser that is signed in.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Session)]
pub(crate) struct SessionBody {
    #[schema(pattern = "^[A-Za-z0-9]{16}$", example = "Xv3nQ0bT7cY2kLwM")]
    id: String,
    created_at: Rfc3339,
    /// When it was last used, to the minute.
    used_at: Rfc3339,
    /// When it ends unless it is used before.
    expires_at: Rfc3339,
    /// The browser as it called itself.
    #[schema(example = "Mozilla/5.0")]
    agent: String,
    /// Whether this request came with it.
    current: bool,
}

impl SessionBody {
    fn new(session: &Session, current: Option<&str>) -> Self {
        Self {
            id: session.id.to_string(),
            created_at: Rfc3339(session.created_at),
            used_at: Rfc3339(session.used_at),
            expires_at: Rfc3339(session.expires_at),
            agent: session.agent.to_string(),
            current: current == Some(&session.id),
        }
    }
}

/// Sessions.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Sessions)]
pub(crate) struct SessionsBody {
    /// Newest first.
    sessions: Vec<SessionBody>,
}

/// Somebody who came in.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SignedIn)]
pub(crate) struct SignedInBody {
    session: SessionBody,
    user: UserBody,
}

/// Sign in
///
/// Sets the cookie of a new session; the session of the cookie that came along ends. An unknown email, a wrong password
/// and a user who is kept out are one answer. Wrong tries are limited per address and per account; a browser that signed in
/// to the account before has a limit of its own.
#[utoipa::path(
    post,
    path = "/api/v1/sessions",
    tag = "sessions",
    operation_id = "signIn",
    security(()),
    request_body(content = SignInBody, content_type = "application/json"),
    responses(
        (status = 201, description = "Signed in.", body = SignedInBody,
            headers(("Set-Cookie" = String, description = "The session, out of reach of scripts."))),
        SignInProblems,
    ),
)]
pub(crate) async fn sign_in(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.refuse_other_sites()?;
    let agent = user_agent(request.headers());
    let shown: SignInBody = body::json(&app, caller.body_source(None), request).await?;
    let users = Arc::clone(&app.accounts.users);
    let origin = caller.origin();
    let replaces = caller.session_token().map(str::to_owned);
    let email = shown.email.clone();
    let signed_in = run_to_completion(async move {
        let shown = SignIn {
            email: &shown.email,
            password: shown.password.reveal(),
            agent: &agent,
            replaces: replaces.as_deref(),
        };
        users.sign_in(shown, origin).await
    });
    let signed_in = caller.guess_sign_in(&app, &email, signed_in).await?;
    let lasts = app.accounts.users.settings().session_max.as_secs();
    let cookies = cookie::signed_in(app.public.base(), &signed_in, lasts);
    let session = &signed_in.session;
    let body = SignedInBody {
        session: SessionBody::new(session, Some(&session.id)),
        user: UserBody::new(&signed_in.user),
    };
    let response = (StatusCode::CREATED, Json(body)).into_response();
    Ok(with_cookies(response, cookies))
}

/// List your sessions
///
/// All of them: there are at most 50, and a new one ends the oldest.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    tag = "sessions",
    operation_id = "listSessions",
    responses((status = 200, description = "Your sessions.", body = SessionsBody), ListSessionsProblems),
)]
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let sessions = app.accounts.users.sessions(principal.user).await?;
    let current = principal.session();
    let sessions = sessions.iter();
    let body = SessionsBody {
        sessions: sessions
            .map(|session| SessionBody::new(session, current))
            .collect(),
    };
    Ok(Json(body).into_response())
}

/// End a session
///
/// One of your own. Ending `current`, the one that the cookie is for, is signing out.
#[utoipa::path(
    delete,
    path = "/api/v1/sessions/{id}",
    tag = "sessions",
    operation_id = "endSession",
    params(("id" = String, Path, description = "The session's id, or `current`.", pattern = "^(current|[A-Za-z0-9]{16})$", example = "current")),
    responses((status = 204, description = "The session has ended."), EndProblems),
)]
pub(crate) async fn end(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let absent = || Problem::new(ProblemCode::NotFound);
    let Path(id) = id.map_err(|_| absent())?;
    let response = StatusCode::NO_CONTENT.into_response();
    if id == CURRENT || principal.session() == Some(&id) {
        sign_out(&app, &caller, &principal).await?;
        return Ok(with_cookies(response, cookie::clear(app.public.base())));
    }
    let users = Arc::clone(&app.accounts.users);
    let origin = caller.origin().by(principal.user);
    run_to_completion(async move { users.end_session(principal.user, &id, origin).await }).await?;
    Ok(response)
}

/// An API key has no session, whatever cookie came with it.
async fn sign_out(app: &App, caller: &Caller, principal: &Principal) -> Result<(), Problem> {
    let token = caller
        .session_token()
        .filter(|_| principal.session().is_some());
    let token = token.ok_or_else(|| Problem::new(ProblemCode::NotFound))?;
    let token = token.to_owned();
    let users = Arc::clone(&app.accounts.users);
    let origin = caller.origin();
    run_to_completion(async move { users.sign_out(&token, origin).await }).await
}

pub(crate) fn with_cookies(
    mut response: Response,
    cookies: impl IntoIterator<Item = HeaderValue>,
) -> Response {
    for cookie in cookies {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers
        .get(USER_AGENT)
        .map_or(&[][..], HeaderValue::as_bytes);
    String::from_utf8_lossy(agent).into_owned()
}
