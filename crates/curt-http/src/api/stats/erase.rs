//! Erasing a link's clicks.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use curt_clicks::erase::ErasedClicks;
use curt_core::names::audit;
use curt_core::{Link, Scope};
use curt_links::Who;
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::body::seconds;
use super::routes::query_text;
use crate::api::documented::EraseProblems;
use crate::api::links::known_key;
use crate::api::query;
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

/// What a request has erased.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErasedBody {
    /// Single clicks that this request has removed; `null` without the scope `read`.
    #[schema(required = true, example = 1_200)]
    erased: Option<u64>,
    /// Whether nothing is left. If something is, send the request again: it goes on where it was.
    complete: bool,
    /// How many seconds ago a click may have been made that is not erased because another server over the same database has
    /// not written it yet: to erase those too, send the request again after as long.
    #[schema(example = 1)]
    lag_max_seconds: u64,
}

/// Erase a link's clicks
///
/// Removes the single clicks of the link from all lists and exports: those of the link that has the key now, not of earlier
/// links of the same key. Its counts stay, unless `counts` is true: then totals, series, rankings and visitors of the link
/// go, too. What its clicks have added to the counts of all links and of tags stays in any case. Works for about ten seconds
/// at most; `complete` says whether something is left. There is no way back.
#[utoipa::path(
    delete,
    path = "/api/v1/links/{key}/clicks",
    tag = "stats",
    operation_id = "eraseLinkClicks",
    params(
        ("key" = String, Path, description = "The link's key.", pattern = "^[A-Za-z0-9._-]{1,64}$", example = "spring-sale"),
        ("counts" = Option<bool>, Query, nullable = false, example = false,
            description = "Whether the link's counts go, too; they stay unless said otherwise."),
    ),
    responses((status = 200, description = "What was erased.", body = ErasedBody), EraseProblems),
)]
pub(crate) async fn of_link(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Manage).await?;
    let key = known_key(key)?;
    let link = app.links.get(Who::reachable_by(&principal), &key).await?;
    let with_counts = wants_counts(query_text(&uri))?;
    let origin = caller.origin().by(principal.user);
    let working = Arc::clone(&app);
    let erased = run_to_completion(async move {
        let subject = match with_counts {
            true => format!("{key} with counts"),
            false => key,
        };
        let audit = &working.accounts.audit;
        audit.record(origin, audit::CLICKS_ERASED, &subject).await;
        erase(&working, &link, with_counts).await
    });
    let erased = erased.await?;
    let reports = app.reports.as_ref();
    let lag_max = reports.map_or(Duration::ZERO, |reports| reports.lag_max(app.clock.now()));
    let body = ErasedBody {
        erased: principal.may(Scope::Read).then_some(erased.clicks),
        complete: erased.is_complete,
        lag_max_seconds: seconds(lag_max),
    };
    Ok(Json(body).into_response())
}

async fn erase(app: &App, link: &Link, with_counts: bool) -> Result<ErasedClicks, Problem> {
    let Some(eraser) = &app.click_eraser else {
        return Err(
            Problem::new(ProblemCode::NotFound).detail("This server does not count clicks.")
        );
    };
    let generation = link.revision.generation;
    Ok(eraser.erase(&link.id, generation, with_counts).await?)
}

fn wants_counts(text: &str) -> Result<bool, Problem> {
    let [counts] = query::values(text, ["counts"])?;
    match counts.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => {
            let message = "Must be true or false.";
            Err(Problem::invalid_field("counts", "value", message))
        }
    }
}
