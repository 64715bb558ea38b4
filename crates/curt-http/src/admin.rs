//! What operators look at: metrics and health, on a port of their own.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::api::health;
use crate::problem::{Problem, ProblemCode};
use crate::readiness::Readiness;
use crate::state::App;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/metrics` and `/health/…`.
pub fn router(app: Arc<App>, registry: Arc<Registry>) -> Router {
    let routes = router_behind(Arc::clone(&app.ready), registry);
    crate::api::finished(app, routes)
}

/// The same for a process that serves no links.
pub fn router_behind(ready: Arc<Readiness>, registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/health", get(health::operator_ready))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::operator_ready))
        .route("/health/create", get(health::operator_create))
        .with_state(ready)
        .merge(metrics_route(registry))
}

/// What an operator who does not know the paths is told.
async fn index() -> &'static str {
    "curt, for operators:\n\
     /metrics         OpenMetrics, for Prometheus\n\
     /health          may this process get requests, and if not, why (as /health/ready)\n\
     /health/live     does it answer at all\n\
     /health/ready    may it get redirects\n\
     /health/create   may it get creates\n"
}

/// `/metrics` alone, for servers that show it beside the links.
pub fn metrics_route<S: Clone + Send + Sync + 'static>(registry: Arc<Registry>) -> Router<S> {
    Router::new()
        .route("/metrics", get(metrics))
        .layer(Extension(registry))
}

async fn metrics(Extension(registry): Extension<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => Problem::new(ProblemCode::Internal).into_response(),
    }
}
