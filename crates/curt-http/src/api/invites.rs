//! `/api/v1/invites`: letting others in.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{InviteRef, Principal};
use curt_core::ports::Invite;
use curt_core::{OwnerId, Role, Scope};
use data_encoding::HEXLOWER;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body;
use super::documented::{AdminReadProblems, EndProblems, InviteProblems};
use super::names::{RoleName, UserId};
use super::time::Rfc3339;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

const TTL_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3_600);
const TTL_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// An invitation to be made.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewInvite)]
pub(crate) struct NewInviteBody {
    /// What the invited person becomes; `member` unless said otherwise.
    role: Option<RoleName>,
    /// How long it can be used; a week unless said otherwise, at most 30 days.
    #[schema(minimum = 1, maximum = 2_592_000, example = 604_800)]
    ttl_seconds: Option<u64>,
}

/// An invitation. The only moment at which its code is shown.
#[derive(Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Invite)]
pub(crate) struct InviteBody {
    /// What to give as `invite` when signing up.
    #[schema(example = "Vb0rT8yZc5mN1pLq7sWd4fGh6jKx2eRu")]
    code: String,
    /// The page to sign up at, with the code.
    #[schema(
        format = "uri",
        example = "https://sho.rt/sign-up?invite=Vb0rT8yZc5mN1pLq7sWd4fGh6jKx2eRu"
    )]
    url: String,
    role: RoleName,
    expires_at: Rfc3339,
}

/// Invitations that can still be used.
#[derive(Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OpenInvites)]
pub(crate) struct OpenInvitesBody {
    /// Those that end first first; at most 100.
    invites: Vec<OpenInviteBody>,
    /// Whether these are all.
    is_complete: bool,
}

/// An invitation that can still be used, without its code.
#[derive(Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OpenInvite)]
pub(crate) struct OpenInviteBody {
    /// What it is revoked by; nobody can sign up with it.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    id: String,
    role: RoleName,
    /// Who made it; `null`: whoever operates the server.
    #[schema(required = true)]
    created_by: Option<UserId>,
    created_at: Rfc3339,
    expires_at: Rfc3339,
}

impl From<&Invite> for OpenInviteBody {
    fn from(invite: &Invite) -> Self {
        Self {
            id: id_of(invite),
            role: invite.role.into(),
            created_by: (invite.made_by != OwnerId::ANONYMOUS).then_some(UserId(invite.made_by)),
            created_at: Rfc3339(invite.created_at),
            expires_at: Rfc3339(invite.expires_at),
        }
    }
}

/// What an invitation is called where its code is not known.
pub(crate) fn id_of(invite: &Invite) -> String {
    HEXLOWER.encode(&invite.secret_hash)
}

/// Reads the code of an invitation or its id, which is longer than any code.
pub(crate) fn parse_ref(text: &str) -> InviteRef<'_> {
    let id = HEXLOWER.decode(text.as_bytes()).ok();
    let id = id.and_then(|bytes| bytes.try_into().ok());
    id.map_or(InviteRef::Code(text), InviteRef::Hash)
}

/// List invitations
///
/// For administrators: those that can still be used.
#[utoipa::path(
    get,
    path = "/api/v1/invites",
    tag = "users",
    operation_id = "listInvites",
    responses((status = 200, description = "The invitations.", body = OpenInvitesBody), AdminReadProblems),
)]
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let users = Arc::clone(&app.accounts.users);
    let listing = async move { users.invites().await };
    let found = app.scans.read(principal.user, listing).await??;
    let body = OpenInvitesBody {
        invites: found.invites.iter().map(OpenInviteBody::from).collect(),
        is_complete: found.is_complete,
    };
    Ok(Json(body).into_response())
}

/// Invite somebody
///
/// For administrators. One person can sign up with the code, once, where signing up is open or by invitation.
#[utoipa::path(
    post,
    path = "/api/v1/invites",
    tag = "users",
    operation_id = "createInvite",
    request_body(content = NewInviteBody, content_type = "application/json"),
    responses((status = 201, description = "The invitation was made.", body = InviteBody), InviteProblems),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let asked: NewInviteBody =
        body::json(&app, caller.body_source(Some(&principal)), request).await?;
    let role = asked.role.map_or(Role::Member, Role::from);
    let ttl = until_key_ends(&app, &principal, ttl(asked.ttl_seconds)?).await?;
    let origin = caller.origin().by(principal.user);
    let users = Arc::clone(&app.accounts.users);
    let invited = run_to_completion(async move { users.invite(role, ttl, origin).await }).await?;
    let body = InviteBody {
        url: app.public.invite_url(&invited.code),
        code: invited.code,
        role: invited.role.into(),
        expires_at: Rfc3339(invited.expires_at),
    };
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

/// Revoke an invitation
///
/// For administrators: nobody can sign up with the code any more.
#[utoipa::path(
    delete,
    path = "/api/v1/invites/{code}",
    tag = "users",
    operation_id = "revokeInvite",
    params(("code" = String, Path, description = "The invitation's code, or its id.", pattern = "^[!-~]{1,64}$",
        example = "Vb0rT8yZc5mN1pLq7sWd4fGh6jKx2eRu")),
    responses((status = 204, description = "The invitation is revoked."), EndProblems),
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    code: Result<Path<String>, PathRejection>,
    caller: Caller,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let Path(code) = code.map_err(|_| Problem::new(ProblemCode::NotFound))?;
    let origin = caller.origin().by(principal.user);
    let users = Arc::clone(&app.accounts.users);
    match run_to_completion(async move { users.revoke_invite(parse_ref(&code), origin).await })
        .await?
    {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Problem::new(ProblemCode::NotFound)),
    }
}

/// What an API key makes does not outlive it.
async fn until_key_ends(
    app: &App,
    principal: &Principal,
    ttl: Duration,
) -> Result<Duration, Problem> {
    let Some(prefix) = principal.api_key() else {
        return Ok(ttl);
    };
    let key = app.accounts.api_keys.get(prefix, None).await?;
    let left = key.ends_at().map(|end| end.since(app.clock.now()));
    Ok(left.map_or(ttl, |left| left.min(ttl)))
}

fn ttl(seconds: Option<u64>) -> Result<Duration, Problem> {
    let ttl = seconds.map_or(TTL_DEFAULT, Duration::from_secs);
    if ttl.is_zero() || ttl > TTL_MAX {
        let message = format!("Must be a number from 1 to {}.", TTL_MAX.as_secs());
        return Err(Problem::invalid_field("ttl_seconds", "range", message));
    }
    Ok(ttl)
}
