//! `GET /api/v1/blocklist`: where links must not lead.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use curt_core::Scope;
use http::Uri;
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use super::documented::AdminListProblems;
use super::query;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

/// The blocklist in force.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Blocklist)]
pub(crate) struct BlocklistBody {
    /// How many hosts and patterns it has.
    entries: usize,
    /// Whether links to `target` are refused and not served; `null` where none was asked about.
    #[schema(required = true)]
    blocked: Option<bool>,
}

/// Ask the blocklist
///
/// For administrators. The list is the file that the setting `links.blocklist` names.
#[utoipa::path(
    get,
    path = "/api/v1/blocklist",
    tag = "system",
    operation_id = "getBlocklist",
    params(("target" = Option<String>, Query, nullable = false, description = "An address that may be blocked.",
        max_length = 8192, example = "https://example.com/")),
    responses((status = 200, description = "The list.", body = BlocklistBody), AdminListProblems),
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Admin).await?;
    let [target] = query::values(uri.query().unwrap_or_default(), ["target"])?;
    let list = app.policy.blocklist();
    let blocked = target.map(|target| {
        let url = Url::parse(&target);
        url.map(|url| list.blocks(&url)).map_err(|_| {
            let why = "Must be a whole address, such as https://example.com/.";
            Problem::invalid_field("target", "value", why)
        })
    });
    let body = BlocklistBody {
        entries: list.entries(),
        blocked: blocked.transpose()?,
    };
    Ok(Json(body).into_response())
}
