//! Pages for people: rendered on the server, complete without scripts, under a policy that allows nothing from
//! elsewhere.

mod account;
mod admin;
mod assets;
mod brand;
mod charts;
mod clicks;
mod confirm;
mod expiry_choice;
mod form;
mod frame;
mod home;
mod link;
mod link_rows;
mod links;
pub(crate) mod negotiate;
mod overview;
mod preview;
mod problems;
mod reference;
mod reports;
mod shortened;
mod sign_in;
mod sign_up;
mod tags;
mod turned;
mod unlock;
mod visitor;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use curt_core::UnixMillis;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

pub use brand::PageSettings;
pub(crate) use preview::preview_page;
pub(crate) use problems::{PageRequest, problem_page};
pub(crate) use unlock::{UnlockReason, unlock_page};

use crate::api::{Rfc3339, qr};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

/// Only our own style, script and pictures, live numbers from us alone, and forms only to us.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// For forms whose answer leads to a link's target: browsers hold redirects after a form to `form-action` too.
const LEADING_AWAY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(home::show).post(home::shorten))
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/sign-up", get(sign_up::show).post(sign_up::sign_up))
        .route("/setup", get(sign_up::show_setup).post(sign_up::set_up))
        .merge(account::routes())
        .merge(links::routes())
        .merge(link::routes())
        .merge(clicks::routes())
        .merge(tags::routes())
        .merge(admin::routes())
        .route("/links/{key}/qr.svg", get(qr::read_svg))
        .route("/links/{key}/qr.png", get(qr::read_png))
        .merge(reference::routes())
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

/// The page of a form that was refused, with the status and the headers of the problem.
fn refused(problem: Problem, page: impl FnOnce(StatusCode) -> Response) -> Response {
    let mut page = page(problem.code().status());
    insert_missing(&mut page, &problem.into_response());
    page
}

/// An instant as pages show it: in UTC, until a script puts it into the visitor's zone.
struct PageTime {
    machine: String,
    utc: String,
}

impl From<UnixMillis> for PageTime {
    fn from(at: UnixMillis) -> Self {
        let machine = Rfc3339(at).to_string();
        let minute = machine.get(..16).unwrap_or(&machine);
        Self {
            utc: format!("{} UTC", minute.replace('T', " ")),
            machine,
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
