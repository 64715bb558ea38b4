//! `/admin/invitations`: letting others in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{AccountError, IssuedInvite, SignUp, UserRef};
use curt_core::ports::Invite;
use curt_core::{OwnerId, Role};
use http::{StatusCode, Uri};

use super::question::AdminQuestion;
use super::{AdminBar, Refused, administrator, frame, posted};
use crate::api::invites::{id_of, parse_ref};
use crate::caller::Caller;
use crate::pages::confirm::Question;
use crate::pages::form::see_other;
use crate::pages::frame::Frame;
use crate::pages::visitor::Visitor;
use crate::pages::{PageTime, page, refused};
use crate::problem::Problem;
use crate::state::App;
use crate::tasks::run_to_completion;

const PATH: &str = "/admin/invitations";
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Template)]
#[template(path = "admin_invitations.html")]
struct InvitationsPage {
    frame: Frame,
    bar: AdminBar,
    /// Whether nobody can sign up, with an invitation or without.
    is_closed: bool,
    made: Option<MadeInvite>,
    open: Vec<OpenInviteRow>,
    /// Whether `open` are all.
    is_complete: bool,
}

/// An invitation that can still be used.
struct OpenInviteRow {
    id: String,
    role: &'static str,
    made: PageTime,
    ends: PageTime,
    inviter: Option<Inviter>,
}

/// Who made an invitation.
#[derive(Clone)]
struct Inviter {
    id: OwnerId,
    /// Their email, or their id where they are gone.
    name: String,
}

/// Known at this moment only.
struct MadeInvite {
    address: String,
    code: String,
    role: &'static str,
    ends: PageTime,
}

impl InvitationsPage {
    async fn read(app: &App, administrator: &Visitor, bar: AdminBar) -> Result<Self, Problem> {
        let users = Arc::clone(&app.accounts.users);
        let reading = async move { users.invites().await };
        let found = app
            .scans
            .read(administrator.principal.user, reading)
            .await??;
        Ok(Self {
            frame: frame(app, administrator),
            bar,
            is_closed: app.accounts.users.settings().sign_up == SignUp::Closed,
            made: None,
            open: open_rows(app, &found.invites).await?,
            is_complete: found.is_complete,
        })
    }
}

/// Looks every inviter up once: few people make invitations.
async fn open_rows(app: &App, invites: &[Invite]) -> Result<Vec<OpenInviteRow>, AccountError> {
    let mut inviters: BTreeMap<OwnerId, Inviter> = BTreeMap::new();
    let mut rows = Vec::with_capacity(invites.len());
    for invite in invites {
        let id = invite.made_by;
        if id != OwnerId::ANONYMOUS && !inviters.contains_key(&id) {
            let name = match app.accounts.users.get(UserRef::Id(id)).await {
                Ok(user) => user.email.to_string(),
                Err(AccountError::NotFound) => id.to_string(),
                Err(error) => return Err(error),
            };
            inviters.insert(id, Inviter { id, name });
        }
        rows.push(OpenInviteRow {
            id: id_of(invite),
            role: invite.role.name(),
            made: invite.created_at.into(),
            ends: invite.expires_at.into(),
            inviter: inviters.get(&id).cloned(),
        });
    }
    Ok(rows)
}

impl MadeInvite {
    fn of(app: &App, invite: IssuedInvite) -> Self {
        Self {
            address: app.public.invite_url(&invite.code),
            code: invite.code,
            role: invite.role.name(),
            ends: invite.expires_at.into(),
        }
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Refused> {
    let administrator = administrator(&app, &caller, &uri).await?;
    let bar = AdminBar::new(PATH, &administrator).said(&uri);
    let shown = InvitationsPage::read(&app, &administrator, bar).await?;
    Ok(page(StatusCode::OK, &shown))
}

pub(super) async fn invite(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refused> {
    let (administrator, form) = posted(&app, &caller, request).await?;
    let role = match form.secret("role") {
        "admin" => Role::Admin,
        _ => Role::Member,
    };
    let days = match form.secret("ends") {
        "day" => 1,
        "month" => 30,
        _ => 7,
    };
    let origin = caller.origin().by(administrator.principal.user);
    let users = Arc::clone(&app.accounts.users);
    let made = run_to_completion(async move { users.invite(role, DAY * days, origin).await });
    let made = made.await?;
    let bar = AdminBar::new(PATH, &administrator);
    let mut shown = InvitationsPage::read(&app, &administrator, bar).await?;
    shown.made = Some(MadeInvite::of(&app, made));
    Ok(page(StatusCode::CREATED, &shown))
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refused> {
    let (administrator, form) = posted(&app, &caller, request).await?;
    // The whole address is what was kept.
    let typed = form.text("code");
    let code = typed
        .rsplit("invite=")
        .next()
        .unwrap_or_default()
        .to_owned();
    let is_valid = app.accounts.users.is_invited(parse_ref(&code)).await?;
    if !is_valid {
        let why = "There is no such invitation, or it was used, has ended or was revoked.";
        let problem = Problem::invalid_field("code", "unknown", why);
        let bar = AdminBar::new(PATH, &administrator).failed(&problem);
        let shown = InvitationsPage::read(&app, &administrator, bar).await?;
        return Ok(refused(problem, |status| page(status, &shown)).into_response());
    }
    if !Question::is_answered(&form) {
        let question = AdminQuestion {
            question: "Revoke the invitation?".to_owned(),
            consequence: "Whoever has its address cannot make an account with it any more."
                .to_owned(),
            yes: "Revoke",
            action: format!("{PATH}/revoke"),
            fields: vec![("code", code)],
            back: PATH.to_owned(),
        };
        return Ok(question.ask(&app, &administrator));
    }
    let origin = caller.origin().by(administrator.principal.user);
    let users = Arc::clone(&app.accounts.users);
    run_to_completion(async move { users.revoke_invite(parse_ref(&code), origin).await }).await?;
    Ok(see_other(&format!("{PATH}?done=revoked")))
}
