//! Whether the process lives, and what it can do now.
//!
//! The public port tells which checks failed; why is told on the operators' port alone, because reasons name hosts and
//! files.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::readiness::{Impact, Readiness};
use crate::state::App;

/// One check.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Check)]
pub(crate) struct CheckBody {
    #[schema(example = "links")]
    name: &'static str,
    ok: bool,
    /// What a failed check takes away: `unavailable` (requests cannot be answered), `no_creates` (links are followed and
    /// none can be made), or `degraded` (something else stands still).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(unavailable|no_creates|degraded)$")]
    impact: Option<&'static str>,
    /// Why a check failed; on the operators' port only.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What the server can do now.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Health {
    /// `ok`; `degraded` while links are followed and something else fails; `unavailable` while starting, stopping, or
    /// without a part that every request needs.
    #[schema(pattern = "^(ok|degraded|unavailable)$", example = "ok")]
    status: &'static str,
    checks: Vec<CheckBody>,
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
///
/// A server that follows links but cannot create any stays ready: `/health/create` tells that one.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "health",
    operation_id = "healthReady",
    security(()),
    responses(
        (status = 200, description = "Requests are answered; failed checks are listed.", body = Health),
        (status = 503, description = "A part that every request needs is missing.", body = Health),
    ),
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    answer(&app.ready, Impact::Unavailable, Audience::Public)
}

/// Can links be created here?
#[utoipa::path(
    get,
    path = "/health/create",
    tag = "health",
    operation_id = "healthCreate",
    security(()),
    responses(
        (status = 200, description = "Links can be created and changed.", body = Health),
        (status = 503, description = "Links cannot be created here now.", body = Health),
    ),
)]
pub(crate) async fn create(State(app): State<Arc<App>>) -> Response {
    answer(&app.ready, Impact::NoCreates, Audience::Public)
}

/// [`ready`] for operators.
pub(crate) async fn operator_ready(State(ready): State<Arc<Readiness>>) -> Response {
    answer(&ready, Impact::Unavailable, Audience::Operators)
}

/// [`create`] for operators.
pub(crate) async fn operator_create(State(ready): State<Arc<Readiness>>) -> Response {
    answer(&ready, Impact::NoCreates, Audience::Operators)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Public,
    Operators,
}

/// Answers 503 when the failed checks take away `needed` or more.
fn answer(readiness: &Readiness, needed: Impact, audience: Audience) -> Response {
    let impact = readiness.impact();
    let checks = readiness.checks().into_iter().map(|check| {
        let failure = check.failure;
        CheckBody {
            name: check.name,
            ok: failure.is_none(),
            impact: failure.as_ref().map(|failure| failure.impact.as_str()),
            reason: failure
                .map(|failure| failure.reason)
                .filter(|_| audience == Audience::Operators),
        }
    });
    let health = Health {
        status: match impact {
            None => "ok",
            Some(Impact::Unavailable) => "unavailable",
            Some(Impact::NoCreates | Impact::Degraded) => "degraded",
        },
        checks: checks.collect(),
    };
    let status = match impact {
        Some(impact) if impact >= needed => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    (status, Json(health)).into_response()
}
