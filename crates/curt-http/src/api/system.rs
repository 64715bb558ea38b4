//! `GET /api/v1/system`: the installation as administrators see it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use curt_core::Scope;
use serde::Serialize;
use utoipa::ToSchema;

use super::documented::AdminReadProblems;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;
use crate::system::{FigureGroup, InstanceStatus, StoreStatus};

/// The installation, as the process that answers knows it.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = System)]
pub(crate) struct SystemBody {
    #[schema(example = "0.1.0")]
    pub(crate) version: &'static str,
    /// The address that short URLs begin with.
    #[schema(example = "https://sho.rt")]
    pub(crate) public_url: String,
    /// The roles of this process.
    #[schema(example = "redirect, api, keygen, keysync, purge, clicks")]
    pub(crate) roles: String,
    /// What this process looks at all the time, and how it ended last.
    pub(crate) checks: Vec<SystemCheck>,
    /// The engines that it uses.
    pub(crate) stores: Vec<StoreStatus>,
    /// The processes that send heartbeats.
    pub(crate) instances: Vec<InstanceStatus>,
    /// Keys, caches, clicks with their lag, stores and requests, as `/metrics` of this process has them.
    pub(crate) figures: Vec<FigureGroup>,
}

/// A check with the reason of a failure, which may name hosts and files.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SystemCheck {
    #[schema(example = "read_links")]
    pub(crate) name: &'static str,
    pub(crate) ok: bool,
    #[schema(required = true)]
    pub(crate) reason: Option<String>,
}

impl SystemBody {
    pub(crate) async fn read(app: &App) -> Self {
        let checks = app.ready.checks().into_iter().map(|check| SystemCheck {
            name: check.name,
            ok: check.failure.is_none(),
            reason: check.failure.map(|failure| failure.reason),
        });
        let mut body = Self {
            version: env!("CARGO_PKG_VERSION"),
            public_url: app.public.base().to_owned(),
            roles: String::new(),
            checks: checks.collect(),
            stores: Vec::new(),
            instances: Vec::new(),
            figures: Vec::new(),
        };
        if let Some(source) = app.system.get() {
            body.roles = source.process.roles().to_owned();
            body.stores = source.process.stores().await;
            body.instances = source.process.instances().await;
            body.figures = source.figures();
        }
        body
    }
}

/// Read the state of the installation
///
/// For administrators: roles, engines, processes, and the figures of the process that answers.
#[utoipa::path(
    get,
    path = "/api/v1/system",
    tag = "system",
    operation_id = "getSystem",
    responses((status = 200, description = "The state.", body = SystemBody), AdminReadProblems),
)]
pub(crate) async fn read(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let reading = {
        let app = Arc::clone(&app);
        async move { SystemBody::read(&app).await }
    };
    let body = app.scans.read(principal.user, reading).await?;
    Ok(Json(body).into_response())
}
