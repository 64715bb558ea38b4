//! The router: everything that the server answers, apart from redirects on the fast path.
//!
//! | path | what |
//! |---|---|
//! | `/` | the page to shorten a URL, and the first screen of whoever is signed in |
//! | `/links…`, `/clicks…`, `/tags…` | the pages about links and their clicks |
//! | `/admin/…` | the pages of administrators |
//! | `/sign-in`, `/sign-out`, `/sign-up`, `/setup`, `/account…` | the pages about accounts |
//! | `/{key}`, `/{key}/` | the redirect, by any method that the link keeps, and by POST the password that it may need |
//! | `/api/v1` | name and version |
//! | `/api/v1/links…`, `/api/v1/tags…` | the REST resources |
//! | `/api/v1/links/{key}/qr`, `/links/{key}/qr.svg`, `….png` | QR codes |
//! | `/api/v1/links/{key}/stats…`, `/api/v1/stats…`, `…/clicks`, `…/orphans…`, `…/live` | reports on clicks |
//! | `/api/v1/users…`, `…/sessions…`, `…/keys…`, `…/invites`, `…/audit` | accounts |
//! | `/api/v1/system`, `/api/v1/limits`, `/api/v1/blocklist` | the installation as administrators see it |
//! | `/api/v1/plan` | what an installation needs |
//! | `/api/v1/createURL`, `/api/v1/deleteURL` | the original API |
//! | `/api`, `/api/openapi.json` | the API described, for people and for programs |
//! | `/problems/{code}` | what an error means |
//! | `/health/live`, `/health/ready`, `/health/create` | for whoever watches the process |
//! | `/assets/…`, `/robots.txt`, `/favicon.ico` | what the pages need |
//!
//! No first part of a path is a key that a link could have: all of them are
//! [reserved](curt_core::reserved::is_reserved).

mod about;
pub(crate) mod audit;
mod blocklist;
pub(crate) mod body;
mod bulk;
mod bulk_body;
pub(crate) mod bulk_change;
pub(crate) mod csv_file;
pub(crate) mod documented;
pub(crate) mod health;
mod idempotency;
pub(crate) mod invites;
mod key_body;
mod keys;
mod leftover;
mod limits;
mod link_body;
pub(crate) mod link_view;
mod links;
pub(crate) mod links_file;
pub(crate) mod list_query;
pub(crate) mod listed;
mod moderation;
mod names;
mod observe;
mod original;
pub(crate) mod paging;
mod permissions;
pub(crate) mod plan;
pub(crate) mod qr;
pub(crate) mod query;
mod ranked_list;
mod readable;
pub(crate) mod revision;
mod secret;
mod sessions;
mod stats;
pub(crate) mod system;
pub(crate) mod tags;
pub(crate) mod time;
mod user_body;
mod user_removal;
mod users;
mod visibility;

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Router, middleware};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

pub(crate) use body::{form_only, read as read_body};
pub(crate) use idempotency::{REPLAYED, bind_to_client, fingerprint};
pub(crate) use limits::server_limits;
pub(crate) use names::UserId;
pub(crate) use sessions::with_cookies;
pub(crate) use time::Rfc3339;
pub(crate) use user_removal::refused as removal_refused;

use crate::openapi;
use crate::pages;
use crate::problem::{Problem, ProblemCode};
use crate::redirect::{RedirectFields, slow};
use crate::state::App;

/// Everything that is not answered on the fast path, and `GET /{key}` itself by the same rules.
pub fn router(app: Arc<App>) -> Router {
    let fields = Arc::new(RedirectFields::new(&app.settings));
    let routes = documented_router()
        .route(
            "/{key}/",
            any(slow::forward).get(slow::follow).post(slow::unlock),
        )
        .merge(pages::routes())
        .layer(Extension(fields))
        .layer(Extension(Arc::new(stats::Feeds::new(app.settings.feeds))))
        .with_state(Arc::clone(&app));
    finished(app, routes)
}

/// Adds what holds for every answer, those to unknown paths and methods included.
pub(crate) fn finished(app: Arc<App>, routes: Router) -> Router {
    routes
        .fallback(no_such_page)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(app, observe::observe))
}

/// The operations of one path: what answers them, and what the OpenAPI document says of them.
type DocumentedRoutes = fn() -> UtoipaMethodRouter<Arc<App>>;

/// The operations that the OpenAPI document describes.
fn documented_routes() -> Vec<DocumentedRoutes> {
    let mut routes: Vec<DocumentedRoutes> = vec![
        || routes!(about::about),
        || routes!(links::list, links::create),
        || routes!(links_file::file),
        || routes!(bulk::bulk, bulk_change::change),
        || routes!(links::read, links::edit, links::delete),
        || routes!(links::restore),
        || routes!(qr::read),
        || routes!(moderation::disable),
        || routes!(moderation::enable),
        || routes!(permissions::list, permissions::grant),
        || routes!(permissions::revoke),
        || routes!(tags::list),
        || routes!(tags::rename, tags::remove),
        || routes!(users::list, users::create),
        || routes!(users::read, users::edit, user_removal::remove),
        || routes!(users::change_password),
        || routes!(invites::list, invites::create),
        || routes!(invites::revoke),
        || routes!(limits::read),
        || routes!(blocklist::read),
        || routes!(audit::list),
        || routes!(plan::read),
        || routes!(system::read),
        || routes!(sessions::list, sessions::sign_in),
        || routes!(sessions::end),
        || routes!(keys::list, keys::create),
        || routes!(keys::revoke),
        || routes!(keys::rotate),
        || routes!(original::create_url),
        || routes!(original::delete_url),
        || {
            routes!(slow::follow, slow::unlock, slow::forward)
                .map(|routes| any(slow::forward).merge(routes))
        },
        || routes!(health::live),
        || routes!(health::ready),
        || routes!(health::create),
    ];
    routes.extend(stats::documented_routes());
    routes
}

/// What answers them. The document is made when it is asked for: its parts take more memory than the rest of an idle server.
fn documented_router() -> Router<Arc<App>> {
    documented_routes()
        .into_iter()
        .fold(Router::new(), |router, routes| {
            router.merge(OpenApiRouter::new().routes(routes()))
        })
}

/// The OpenAPI document of this server.
pub(crate) fn document(app: &App) -> OpenApi {
    let described = OpenApiRouter::with_openapi(openapi::preamble());
    let described = documented_routes()
        .into_iter()
        .fold(described, |described, routes| described.routes(routes()));
    openapi::finish(
        described.into_openapi(),
        app.settings.api.anonymous_create,
        app.links.settings(),
        app.public.base(),
    )
}

async fn no_such_page() -> Response {
    Problem::new(ProblemCode::NotFound).into_response()
}

async fn no_such_method() -> Response {
    Problem::new(ProblemCode::MethodNotAllowed).into_response()
}
