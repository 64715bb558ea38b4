//! `/api/v1`: what answers here.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi;

/// What answers here.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = About)]
pub(crate) struct AboutBody {
    #[schema(example = "curt")]
    name: &'static str,
    /// The version of the server.
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// Where the API is described for programs.
    #[schema(example = "/api/openapi.json")]
    openapi: &'static str,
}

/// Read name and version of the server
#[utoipa::path(
    get,
    path = "/api/v1",
    tag = "health",
    operation_id = "getAbout",
    security(()),
    responses((status = 200, description = "Name and version.", body = AboutBody)),
)]
pub(crate) async fn about() -> Response {
    let body = AboutBody {
        name: "curt",
        version: env!("CARGO_PKG_VERSION"),
        openapi: openapi::PATH,
    };
    Json(body).into_response()
}
