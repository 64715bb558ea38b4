//! Pages for people: rendered on the server, complete without scripts, under a policy that allows nothing from
//! elsewhere.

mod assets;
mod home;
pub(crate) mod negotiate;
mod problems;
mod reference;
mod unlock;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use utoipa::openapi::OpenApi;

pub(crate) use problems::problem_page;
pub(crate) use unlock::unlock_page;

use crate::openapi;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Only our own style, script and icon, and forms only to us.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// For forms whose answer leads to a link's target: browsers hold redirects after a form to `form-action` too.
const LEADING_AWAY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

pub(crate) fn routes(document: &OpenApi) -> Router<Arc<App>> {
    Router::new()
        .route("/", get(home::show).post(home::shorten))
        .route("/api", reference::page(document))
        .route(openapi::PATH, reference::document(document))
        .route("/problems", get(problems::index))
        .route("/problems/{code}", get(problems::kind))
        .route("/assets/{name}", get(assets::serve))
        .route("/favicon.ico", get(assets::favicon))
        .route("/robots.txt", get(assets::robots))
}

/// Renders a page.
fn page(status: StatusCode, template: &impl Template) -> Response {
    page_under(PAGE_POLICY, status, template)
}

/// Renders a page whose form ends at a link's target.
fn page_leading_away(status: StatusCode, template: &impl Template) -> Response {
    page_under(LEADING_AWAY_POLICY, status, template)
}

fn page_under(policy: &'static str, status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => {
            let fields = [
                (CONTENT_TYPE, "text/html; charset=utf-8"),
                (CONTENT_SECURITY_POLICY, policy),
            ];
            (status, fields, html).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            Problem::new(ProblemCode::Internal).into_response()
        }
    }
}

/// For the headers that a page takes over from the answer in whose place it stands.
fn insert_missing(page: &mut Response, from: &Response) {
    for (name, value) in from.headers() {
        if name != CONTENT_TYPE && name != http::header::CONTENT_LENGTH {
            let value: HeaderValue = value.clone();
            page.headers_mut().entry(name).or_insert(value);
        }
    }
}
