//! Whether the process lives, and whether it should get requests.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::{App, Readiness};

/// One condition for being ready.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    #[schema(example = "store")]
    name: &'static str,
    ok: bool,
}

/// Whether the server is fit for requests.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Health {
    /// `ok`, or `unavailable` while starting, stopping, or without a part that is needed.
    #[schema(pattern = "^(ok|unavailable)$", example = "ok")]
    status: &'static str,
    checks: Vec<Check>,
}

/// Is the process alive?
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "health",
    operation_id = "healthLive",
    security(()),
    responses((status = 200, description = "The process answers.", body = Health)),
)]
pub(crate) async fn live() -> Response {
    let health = Health {
        status: "ok",
        checks: Vec::new(),
    };
    Json(health).into_response()
}

/// Should the process get requests?
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "health",
    operation_id = "healthReady",
    security(()),
    responses(
        (status = 200, description = "Every check has passed.", body = Health),
        (status = 503, description = "Some check has not passed.", body = Health),
    ),
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    answer(&app.ready)
}

/// The same for a process that serves no links.
pub(crate) async fn ready_behind(State(ready): State<Arc<Readiness>>) -> Response {
    answer(&ready)
}

fn answer(readiness: &Readiness) -> Response {
    let ready = readiness.is_ready();
    let checks = readiness.checks().into_iter();
    let health = Health {
        status: if ready { "ok" } else { "unavailable" },
        checks: checks.map(|(name, ok)| Check { name, ok }).collect(),
    };
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(health)).into_response()
}
