//! `/admin/…`: what administrators see and do. Everything here can be done by the API, too.

mod audit;
mod blocklist;
mod invitations;
mod limits;
mod plan;
mod question;
mod system;
mod user;
mod users;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use curt_core::Scope;
use http::Uri;

use super::form::{Form, Mistakes, see_other};
use super::frame::{ADMINISTRATION, Frame};
use super::visitor::Visitor;
use crate::caller::{Caller, scope_missing};
use crate::problem::Problem;
use crate::state::App;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/admin", get(async || see_other("/admin/users")))
        .route("/admin/users", get(users::show).post(users::add))
        .route("/admin/users/{id}", get(user::show).post(user::edit))
        .route("/admin/users/{id}/switch", post(user::switch))
        .route("/admin/users/{id}/remove", post(user::remove))
        .route(
            "/admin/invitations",
            get(invitations::show).post(invitations::invite),
        )
        .route("/admin/invitations/revoke", post(invitations::revoke))
        .route("/admin/limits", get(limits::show))
        .route("/admin/audit", get(audit::show))
        .route("/admin/blocklist", get(blocklist::show))
        .route("/admin/blocklist/switch", post(blocklist::switch))
        .route("/admin/system", get(system::show))
        .route("/admin/plan", get(plan::show))
}

/// What all these pages have below the bar.
pub(super) struct AdminBar {
    /// The address of the page that is shown, among those of the bar.
    here: &'static str,
    csrf: String,
    mistakes: Mistakes,
    /// What was done by the form before.
    said: Option<&'static str>,
}

/// The pages, in the order of the bar.
const PAGES: [(&str, &str); 7] = [
    ("/admin/users", "Users"),
    ("/admin/invitations", "Invitations"),
    ("/admin/limits", "Limits"),
    ("/admin/audit", "Audit log"),
    ("/admin/blocklist", "Blocklist"),
    ("/admin/system", "System"),
    ("/admin/plan", "Planner"),
];

impl AdminBar {
    fn new(here: &'static str, administrator: &Visitor) -> Self {
        Self {
            here,
            csrf: administrator.csrf.clone(),
            mistakes: Mistakes::default(),
            said: None,
        }
    }

    /// With what the form came to that led here.
    fn said(mut self, uri: &Uri) -> Self {
        let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
        self.said = match asked.text("done").as_str() {
            "added" => Some("The account was made."),
            "saved" => Some("Saved."),
            "disabled" => {
                Some("The user is disabled: their sessions and API keys count for nothing.")
            }
            "enabled" => Some("The user is enabled again."),
            "removed" => Some("The user was removed."),
            "revoked" => Some("The invitation was revoked."),
            "link-disabled" => Some("The link is switched off: visitors get 410."),
            "link-enabled" => Some("The link is switched on again."),
            _ => None,
        };
        self
    }

    fn failed(mut self, problem: &Problem) -> Self {
        self.mistakes = Mistakes::of_problem(problem);
        self
    }

    fn pages(&self) -> [(&'static str, &'static str); 7] {
        PAGES
    }
}

fn frame(app: &App, administrator: &Visitor) -> Frame {
    Frame::new(app, Some(administrator)).within(ADMINISTRATION)
}

/// Why a page is not shown.
enum Refused {
    /// Nobody is signed in; the address to come back to.
    SignInNeeded(String),
    Problem(Problem),
}

impl<P: Into<Problem>> From<P> for Refused {
    fn from(problem: P) -> Self {
        Self::Problem(problem.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::SignInNeeded(next) => see_other(&format!("/sign-in?next={next}")),
            Self::Problem(problem) => problem.into_response(),
        }
    }
}

/// Whoever is signed in, if they are an administrator. Members hear what the API tells them: 403.
async fn administrator(app: &App, caller: &Caller, uri: &Uri) -> Result<Visitor, Refused> {
    let visitor = Visitor::of(app, caller).await?;
    let visitor = visitor.ok_or_else(|| Refused::SignInNeeded(uri.path().to_owned()))?;
    match visitor.may(Scope::Admin) {
        true => Ok(visitor),
        false => Err(scope_missing(Scope::Admin).into()),
    }
}

/// The form that a page of ours made for the administrator.
async fn posted(app: &App, caller: &Caller, request: Request) -> Result<(Visitor, Form), Refused> {
    let visitor = administrator(app, caller, request.uri()).await?;
    let form = Form::read(app, request).await?;
    visitor.check(&form)?;
    Ok((visitor, form))
}
