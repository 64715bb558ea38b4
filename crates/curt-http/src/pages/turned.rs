//! Pages for whoever is signed in, and what everybody else gets instead.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::Uri;
use url::form_urlencoded;

use super::form::{Form, see_other};
use super::visitor::Visitor;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

/// Why a page is not shown.
pub(super) enum Turned {
    /// Nobody is signed in, or not any more; the page to come back to.
    SignInNeeded(String),
    Problem(Problem),
}

impl From<Problem> for Turned {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Turned {
    fn into_response(self) -> Response {
        match self {
            Self::SignInNeeded(next) => {
                // Browsers take a slash as it is, and people read it.
                let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
                see_other(&format!("/sign-in?next={}", next.replace("%2F", "/")))
            }
            Self::Problem(problem) => problem.into_response(),
        }
    }
}

/// Whoever is signed in and asks for a page.
pub(super) async fn signed_in(app: &App, caller: &Caller, uri: &Uri) -> Result<Visitor, Turned> {
    let visitor = Visitor::of(app, caller).await?;
    let asked = || uri.path_and_query().map_or("/", |asked| asked.as_str());
    visitor.ok_or_else(|| Turned::SignInNeeded(asked().to_owned()))
}

/// The form that a page of ours made for the visitor. `page` is where that page is.
pub(super) async fn posted(
    app: &App,
    caller: &Caller,
    request: Request,
    page: &str,
) -> Result<(Visitor, Form), Turned> {
    let visitor = Visitor::of(app, caller).await?;
    let visitor = visitor.ok_or_else(|| Turned::SignInNeeded(page.to_owned()))?;
    let form = Form::read(app, request).await?;
    visitor.check(&form)?;
    Ok((visitor, form))
}
