//! `GET /{key}` for connections that were handed to the router, and for keys that the fast path did not recognise:
//! percent-encoded ones, which are decoded once, and those with a slash behind them, which people type.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use curt_core::{DomainId, LinkRef};
use curt_links::Resolution;
use http::Uri;

use super::documented::FollowProblems;
use crate::metrics::RedirectOutcome;
use crate::problem::{Problem, ProblemCode};
use crate::redirect::RedirectFields;
use crate::state::App;

/// Follow a link
///
/// Sends the visitor to the link's target. `HEAD` answers alike.
#[utoipa::path(
    get,
    path = "/{key}",
    tag = "redirect",
    operation_id = "follow",
    security(()),
    params(("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale")),
    responses(
        (status = 301, description = "To the target, for good.", headers(("Location" = String, description = "The target."))),
        (status = 302, description = "To the target.", headers(("Location" = String, description = "The target."))),
        (status = 307, description = "To the target, with the same method.", headers(("Location" = String, description = "The target."))),
        (status = 308, description = "To the target, for good and with the same method.", headers(("Location" = String, description = "The target."))),
        FollowProblems,
    ),
)]
pub(crate) async fn follow(
    State(app): State<Arc<App>>,
    Extension(fields): Extension<Arc<RedirectFields>>,
    key: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Response {
    let resolution = match &key {
        Ok(Path(key)) => {
            let link = LinkRef {
                domain: DomainId::DEFAULT,
                key,
            };
            app.resolver.resolve(link).await
        }
        // Not UTF-8, so not a key.
        Err(_) => Ok(Resolution::Absent),
    };
    let (outcome, response) = match resolution {
        Ok(Resolution::Live(hit)) => {
            let response = fields.respond(&hit, uri.query(), app.clock.now());
            (RedirectOutcome::Loaded, response)
        }
        // Until visitors can say who they are, a link that is not for everybody is for nobody.
        Ok(Resolution::Absent | Resolution::Guarded(_)) => {
            let problem = Problem::new(ProblemCode::LinkNotFound)
                .detail("Check the address, upper and lower case included.");
            (RedirectOutcome::Absent, problem.into_response())
        }
        Ok(Resolution::Gone | Resolution::Blocked) => {
            let problem = Problem::new(ProblemCode::LinkGone);
            (RedirectOutcome::Gone, problem.into_response())
        }
        Err(error) => (RedirectOutcome::Error, Problem::from(error).into_response()),
    };
    app.metrics.redirected(outcome, 1);
    response
}
