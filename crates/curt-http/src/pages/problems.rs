//! Errors, for people.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use curt_core::reserved::is_reserved;
use http::header::LOCATION;
use http::request::Parts;
use http::{Method, StatusCode};
use url::form_urlencoded;

use super::form::own_path;
use super::frame::Frame;
use super::{insert_missing, page};
use crate::caller::Caller;
use crate::problem::{InvalidField, Problem, ProblemCode};
use crate::settings::PrivateDenied;
use crate::state::App;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: Frame,
    status: StatusCode,
    title: &'static str,
    detail: &'a str,
    errors: &'a [InvalidField],
    /// Where another account may help.
    sign_in: Option<SignInOffer>,
    /// The same address, where waiting helps.
    again: Option<&'a str>,
}

struct SignInOffer {
    address: String,
    label: &'static str,
}

#[derive(Template)]
#[template(path = "problems.html")]
struct IndexPage {
    frame: Frame,
    codes: [ProblemCode; ProblemCode::ALL.len()],
}

#[derive(Template)]
#[template(path = "problem_kind.html")]
struct KindPage {
    frame: Frame,
    code: ProblemCode,
}

/// What is remembered of a browser's request, in case that its answer is a problem.
pub(crate) struct PageRequest {
    caller: Caller,
    /// Path and query.
    address: String,
    is_read: bool,
}

impl PageRequest {
    pub(crate) fn of(app: &App, parts: &Parts) -> Self {
        let address = parts.uri.path_and_query();
        Self {
            caller: Caller::of(app, parts),
            address: address.map_or_else(String::new, ToString::to_string),
            is_read: matches!(parts.method, Method::GET | Method::HEAD),
        }
    }

    /// Whether the request was for a short link, or for something that there never was.
    fn is_for_link(&self) -> bool {
        let path = self.address.trim_start_matches('/');
        let first = path.split(['/', '?']).next().unwrap_or_default();
        self.is_read && !first.is_empty() && !is_reserved(first)
    }
}

/// The page in place of `answer`, which showed the problem to a program.
pub(crate) async fn problem_page(
    app: &App,
    asked: &PageRequest,
    problem: &Problem,
    answer: Response,
) -> Response {
    let is_404 = matches!(
        problem.code(),
        ProblemCode::LinkNotFound | ProblemCode::NotFound
    );
    if let Some(elsewhere) = &app.settings.pages.not_found_url
        && is_404
        && asked.is_for_link()
    {
        return (StatusCode::FOUND, [(LOCATION, elsewhere.clone())]).into_response();
    }
    let body = problem.body();
    let mut shown = page(
        answer.status(),
        &ProblemPage {
            frame: frame(app, asked, problem.code()).await,
            status: answer.status(),
            title: body.title,
            detail: &body.detail,
            errors: &body.errors,
            sign_in: sign_in_offer(asked, problem.code()),
            again: again(asked, answer.status()),
        },
    );
    insert_missing(&mut shown, &answer);
    shown
}

/// Looks up who is signed in, but not under load, and not where private links are hidden: whoever was looked up before the
/// link was refused would be found faster.
async fn frame(app: &App, asked: &PageRequest, code: ProblemCode) -> Frame {
    let is_loaded =
        code.status() == StatusCode::TOO_MANY_REQUESTS || code.status().is_server_error();
    let hides = app.settings.redirect.private_denied == PrivateDenied::Hidden;
    if is_loaded || hides && code == ProblemCode::LinkNotFound {
        Frame::unknown(app, &asked.caller)
    } else {
        Frame::of_caller(app, &asked.caller).await
    }
}

fn again(asked: &PageRequest, status: StatusCode) -> Option<&str> {
    let helps = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    own_path(&asked.address).filter(|_| helps && asked.is_read)
}

fn sign_in_offer(asked: &PageRequest, code: ProblemCode) -> Option<SignInOffer> {
    match code {
        ProblemCode::LinkForbidden => {
            let next = form_urlencoded::Serializer::new(String::new())
                .append_pair("next", &asked.address)
                .finish();
            Some(SignInOffer {
                address: format!("/sign-in?{next}"),
                label: "Change account",
            })
        }
        ProblemCode::SignUpClosed => Some(SignInOffer {
            address: "/sign-in".to_owned(),
            label: "Sign in",
        }),
        _ => None,
    }
}

pub(super) async fn index(State(app): State<Arc<App>>, caller: Caller) -> Response {
    page(
        StatusCode::OK,
        &IndexPage {
            frame: Frame::of_caller(&app, &caller).await,
            codes: ProblemCode::ALL,
        },
    )
}

pub(super) async fn kind(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(code): Path<String>,
) -> Response {
    match ProblemCode::from_slug(&code) {
        Some(code) => page(
            StatusCode::OK,
            &KindPage {
                frame: Frame::of_caller(&app, &caller).await,
                code,
            },
        ),
        None => Problem::new(ProblemCode::NotFound).into_response(),
    }
}
