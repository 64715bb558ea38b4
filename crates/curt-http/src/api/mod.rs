//! The router: everything that the server answers, apart from redirects on the fast path.
//!
//! | path | what |
//! |---|---|
//! | `/` | the page to shorten a URL |
//! | `/sign-in`, `/sign-out`, `/sign-up`, `/setup`, `/account…` | the pages about accounts |
//! | `/{key}`, `/{key}/` | the redirect, by any method that the link keeps, and by POST the password that it may need |
//! | `/api/v1` | name and version |
//! | `/api/v1/links…` | the REST resource |
//! | `/api/v1/links/{key}/stats…`, `/api/v1/stats…`, `…/clicks`, `…/orphans…`, `…/live` | reports on clicks |
//! | `/api/v1/users…`, `…/sessions…`, `…/keys…`, `…/invites`, `…/audit` | accounts |
//! | `/api/v1/createURL`, `/api/v1/deleteURL` | the original API |
//! | `/api`, `/api/openapi.json` | the API described, for people and for programs |
//! | `/problems/{code}` | what an error means |
//! | `/health/live`, `/health/ready`, `/health/create` | for whoever watches the process |
//! | `/assets/…`, `/robots.txt`, `/favicon.ico` | what the pages need |
//!
//! No first part of a path is a key that a link could have: all of them are
//! [reserved](curt_core::reserved::is_reserved).

mod about;
mod audit;
pub(crate) mod body;
mod bulk;
mod bulk_body;
pub(crate) mod documented;
pub(crate) mod health;
mod idempotency;
mod invites;
mod key_body;
mod keys;
mod leftover;
mod link_body;
mod link_view;
mod links;
mod list_query;
mod moderation;
mod names;
mod observe;
mod original;
mod paging;
mod permissions;
mod query;
mod ranked_list;
mod readable;
pub(crate) mod revision;
mod secret;
mod sessions;
mod stats;
mod time;
mod user_body;
mod user_removal;
mod users;
mod visibility;

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Router, middleware};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

pub(crate) use body::{form_only, read as read_body};
pub(crate) use idempotency::{REPLAYED, bind_to_client, fingerprint};
pub(crate) use sessions::with_cookies;
pub(crate) use time::Rfc3339;

use crate::openapi;
use crate::pages;
use crate::problem::{Problem, ProblemCode};
use crate::redirect::{RedirectFields, slow};
use crate::state::App;

/// Everything that is not answered on the fast path, and `GET /{key}` itself by the same rules.
pub fn router(app: Arc<App>) -> Router {
    let (documented, document) = documented_routes().split_for_parts();
    let document = openapi::finish(
        document,
        app.settings.api.anonymous_create,
        app.links.settings(),
    );
    let fields = Arc::new(RedirectFields::new(&app.settings));
    let routes = documented
        .route(
            "/{key}/",
            any(slow::forward).get(slow::follow).post(slow::unlock),
        )
        .merge(pages::routes(&document))
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

/// The operations that the OpenAPI document describes.
fn documented_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(openapi::preamble())
        .routes(routes!(about::about))
        .routes(routes!(links::list, links::create))
        .routes(routes!(bulk::bulk))
        .routes(routes!(links::read, links::edit, links::delete))
        .routes(routes!(links::restore))
        .merge(stats::documented_routes())
        .routes(routes!(moderation::disable))
        .routes(routes!(moderation::enable))
        .routes(routes!(permissions::list, permissions::grant))
        .routes(routes!(permissions::revoke))
        .routes(routes!(users::list, users::create))
        .routes(routes!(users::read, users::edit, user_removal::remove))
        .routes(routes!(users::change_password))
        .routes(routes!(invites::create))
        .routes(routes!(audit::list))
        .routes(routes!(sessions::list, sessions::sign_in))
        .routes(routes!(sessions::end))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(keys::rotate))
        .routes(routes!(original::create_url))
        .routes(routes!(original::delete_url))
        .routes(
            routes!(slow::follow, slow::unlock, slow::forward)
                .map(|routes| any(slow::forward).merge(routes)),
        )
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::create))
}

async fn no_such_page() -> Response {
    Problem::new(ProblemCode::NotFound).into_response()
}

async fn no_such_method() -> Response {
    Problem::new(ProblemCode::MethodNotAllowed).into_response()
}
