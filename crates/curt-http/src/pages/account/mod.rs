//! `/account`: what somebody can see and change about themselves. Every form answers with a redirect back to the page,
//! but for those whose answer must be seen: mistakes, and the token of a new API key, which is shown once.

mod keys;
mod profile;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{StatusCode, Uri};

use self::view::{AccountPage, Outcome};
use super::form::{Form, see_other};
use super::turned::{self, Turned};
use super::visitor::Visitor;
use super::{page, refused};
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

const PATH: &str = "/account";

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/account", get(show).post(profile::edit))
        .route("/account/password", post(profile::change_password))
        .route("/account/sessions/end", post(profile::end_session))
        .route("/account/keys", post(keys::issue))
        .route("/account/keys/rotate", post(keys::rotate))
        .route("/account/keys/revoke", post(keys::revoke))
}

async fn show(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Turned> {
    let visitor = Visitor::of(&app, &caller).await?;
    let visitor = visitor.ok_or_else(|| Turned::SignInNeeded(PATH.to_owned()))?;
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let outcome = Outcome::done(&asked.text("done"));
    let shown = AccountPage::load(&app, &visitor, outcome).await?;
    Ok(page(StatusCode::OK, &shown))
}

/// The form that a page of ours made for the visitor.
async fn posted(app: &App, caller: &Caller, request: Request) -> Result<(Visitor, Form), Turned> {
    turned::posted(app, caller, request, PATH).await
}

fn done(what: &str) -> Response {
    see_other(&format!("/account?done={what}"))
}

/// The page again, with what was wrong.
async fn failed(app: &App, visitor: &Visitor, form: &Form, problem: Problem) -> Response {
    let outcome = Outcome::failed(&problem, form);
    match AccountPage::load(app, visitor, outcome).await {
        Ok(shown) => refused(problem, |status| page(status, &shown)),
        Err(worse) => worse.into_response(),
    }
}
