//! `/sign-in` and `/sign-out`.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{SignIn, SignUp};
use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use super::assets::Assets;
use super::form::{Form, Mistakes, own_path, see_other};
use super::visitor::Visitor;
use super::{VERSION, page, page_leading_away, refused};
use crate::caller::{Caller, cookie};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::to_the_end;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    assets: &'static Assets,
    version: &'static str,
    /// Where to go afterwards.
    next: Option<String>,
    email: String,
    offers_sign_up: bool,
    mistakes: Mistakes,
}

impl SignInPage {
    fn new(app: &App, next: &str) -> Self {
        Self {
            assets: Assets::addresses(),
            version: VERSION,
            next: own_path(next).map(str::to_owned),
            email: String::new(),
            offers_sign_up: app.accounts.people.settings().sign_up != SignUp::Closed,
            mistakes: Mistakes::default(),
        }
    }

    fn respond(&self, status: StatusCode) -> Response {
        match self.next {
            Some(_) => page_leading_away(status, self),
            None => page(status, self),
        }
    }
}

pub(super) async fn show(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    SignInPage::new(&app, &asked.text("next")).respond(StatusCode::OK)
}

pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Response {
    let agent = agent(request.headers());
    let form = match posted(&app, &caller, request).await {
        Ok(form) => form,
        Err(problem) => return problem.into_response(),
    };
    let (email, next) = (form.text("email"), form.text("next"));
    let tried = async {
        caller.may_try_password(&app, &email).await?;
        let password = form.secret("password").to_owned();
        come_in(&app, &caller, email.clone(), password, agent).await
    };
    match tried.await {
        Ok(cookie) => {
            let mut response = see_other(own_path(&next).unwrap_or("/"));
            response.headers_mut().insert(SET_COOKIE, cookie);
            response
        }
        Err(problem) => {
            let shown = SignInPage {
                email,
                mistakes: Mistakes::of_problem(&problem),
                ..SignInPage::new(&app, &next)
            };
            refused(problem, |status| shown.respond(status))
        }
    }
}

/// Ends the session. Without one there is nothing to end, and nothing to refuse.
pub(super) async fn sign_out(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    if let Some(visitor) = Visitor::of(&app, &caller).await? {
        visitor.check(&Form::read(&app, request).await?)?;
        let (app, caller) = (Arc::clone(&app), caller.clone());
        to_the_end(async move {
            let token = caller.session_token().unwrap_or_default();
            app.accounts.people.sign_out(token, caller.origin()).await
        })
        .await?;
    }
    let mut response = see_other("/");
    if let Some(cleared) = cookie::clear(app.public.base()) {
        response.headers_mut().insert(SET_COOKIE, cleared);
    }
    Ok(response)
}

/// A form that acts without a session.
pub(super) async fn posted(app: &App, caller: &Caller, request: Request) -> Result<Form, Problem> {
    caller.refuse_other_sites()?;
    Form::read(app, request).await
}

/// Begins a session and returns the cookie for it. The session that the browser had ends.
pub(super) async fn come_in(
    app: &Arc<App>,
    caller: &Caller,
    email: String,
    password: String,
    agent: String,
) -> Result<HeaderValue, Problem> {
    let people = Arc::clone(&app.accounts.people);
    let caller = caller.clone();
    let signed_in = to_the_end(async move {
        let shown = SignIn {
            email: &email,
            password: &password,
            agent: &agent,
            replaces: caller.session_token(),
        };
        people.sign_in(shown, caller.origin()).await
    });
    let token = signed_in.await?.token;
    let seconds = app.accounts.people.settings().session_max.as_secs();
    cookie::set(app.public.base(), &token, seconds)
        .ok_or_else(|| Problem::new(ProblemCode::Internal))
}

/// The browser as it calls itself.
pub(super) fn agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
    String::from_utf8_lossy(agent.unwrap_or_default()).into_owned()
}
