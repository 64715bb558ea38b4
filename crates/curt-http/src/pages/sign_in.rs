//! `/sign-in` and `/sign-out`.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{SignIn, SignUp};
use curt_core::reserved::is_reserved;
use curt_core::{DomainId, LinkRef, Visibility};
use curt_links::Resolution;
use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use super::form::{Form, Mistakes, own_path, see_other};
use super::frame::Frame;
use super::visitor::Visitor;
use super::{page, page_leading_away, refused};
use crate::api::with_cookies;
use crate::caller::{Caller, cookie};
use crate::problem::Problem;
use crate::state::App;
use crate::tasks::run_to_completion;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    /// Where to go afterwards.
    next: Option<String>,
    /// Whether that is a link, which is private then.
    leads_to_link: bool,
    email: String,
    offers_sign_up: bool,
    mistakes: Mistakes,
}

impl SignInPage {
    async fn new(app: &App, caller: &Caller, next: &str) -> Self {
        let next = own_path(next);
        Self {
            frame: Frame::of_caller(app, caller).await.at("/sign-in"),
            leads_to_link: next.is_some_and(|next| link_key(next).is_some()),
            next: next.map(str::to_owned),
            email: String::new(),
            offers_sign_up: app.accounts.users.settings().sign_up != SignUp::Closed,
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

pub(super) async fn show(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Response {
    let asked = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let shown = SignInPage::new(&app, &caller, &asked.text("next")).await;
    shown.respond(StatusCode::OK)
}

pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Response {
    let agent = user_agent(request.headers());
    let form = match read_form(&app, &caller, request).await {
        Ok(form) => form,
        Err(problem) => return problem.into_response(),
    };
    let (email, next) = (form.text("email"), form.text("next"));
    let password = form.secret("password").to_owned();
    let signed_in = begin_session(&app, &caller, email.clone(), password, agent);
    match caller.guess_sign_in(&app, &email, signed_in).await {
        Ok(cookies) => {
            let next = checked_next(&app, &next).await;
            with_cookies(see_other(next.unwrap_or("/")), cookies)
        }
        Err(problem) => {
            let shown = SignInPage {
                email,
                mistakes: Mistakes::of_problem(&problem).in_order(&["email", "password"]),
                ..SignInPage::new(&app, &caller, &next).await
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
        run_to_completion(async move {
            let token = caller.session_token().unwrap_or_default();
            app.accounts.users.sign_out(token, caller.origin()).await
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
pub(super) async fn read_form(
    app: &App,
    caller: &Caller,
    request: Request,
) -> Result<Form, Problem> {
    caller.refuse_other_sites()?;
    Form::read(app, request).await
}

/// Where to go after signing in: to a page of this server or to a link that asks for it. Any other link leads away, and
/// a sign-in that ends on somebody else's page is what the owner of that page may have wanted.
async fn checked_next<'n>(app: &App, next: &'n str) -> Option<&'n str> {
    let next = own_path(next)?;
    let Some(key) = link_key(next) else {
        return Some(next);
    };
    let link = LinkRef {
        domain: DomainId::DEFAULT,
        key,
    };
    match app.resolver.resolve(link).await {
        Ok(Resolution::Guarded(link)) if link.visibility == Visibility::Private => Some(next),
        _ => None,
    }
}

/// The key in a path that is not one of the server's own.
fn link_key(path: &str) -> Option<&str> {
    let first = path[1..].split(['/', '?', '#']).next()?;
    (!first.is_empty() && !is_reserved(first)).then_some(first)
}

/// Begins a session and returns the cookies for it. The session that the browser had ends.
pub(super) async fn begin_session(
    app: &Arc<App>,
    caller: &Caller,
    email: String,
    password: String,
    agent: String,
) -> Result<Vec<HeaderValue>, Problem> {
    let users = Arc::clone(&app.accounts.users);
    let caller = caller.clone();
    let signed_in = run_to_completion(async move {
        let shown = SignIn {
            email: &email,
            password: &password,
            agent: &agent,
            replaces: caller.session_token(),
        };
        users.sign_in(shown, caller.origin()).await
    });
    let signed_in = signed_in.await?;
    let seconds = app.accounts.users.settings().session_max.as_secs();
    let base = app.public.base();
    Ok(cookie::signed_in(base, &signed_in, seconds))
}

/// The browser as it calls itself.
pub(super) fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
    String::from_utf8_lossy(agent.unwrap_or_default()).into_owned()
}
