//! `GET /api/v1/limits`: what everybody may do who has no limits of their own.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use curt_accounts::LimitSettings;
use curt_core::Scope;
use curt_core::ports::QuotaRule;
use serde::Serialize;
use utoipa::ToSchema;

use super::documented::AdminReadProblems;
use super::names::RateBody;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

/// A limit of this server.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ServerLimit)]
pub(crate) struct LimitBody {
    /// The setting that sets it, in the section `limits`.
    #[schema(example = "creations_per_user")]
    name: &'static str,
    /// `null`: there is none.
    #[schema(required = true)]
    rate: Option<RateBody>,
}

/// The limits of this server.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ServerLimits)]
pub(crate) struct LimitsBody {
    limits: Vec<LimitBody>,
}

/// The limits by the settings that set them.
pub(crate) fn server_limits(limits: &LimitSettings) -> [(&'static str, Option<QuotaRule>); 14] {
    [
        ("creations_per_key", limits.creations_per_key),
        ("creations_per_user", limits.creations_per_user),
        ("creations_per_address", limits.creations_per_address),
        ("redirections_per_key", limits.redirections_per_key),
        ("redirections_per_user", limits.redirections_per_user),
        ("misses_per_address", limits.misses_per_address),
        ("sign_ins_per_address", limits.sign_ins_per_address),
        ("sign_ins_per_account", limits.sign_ins_per_account),
        ("sign_ups_per_address", limits.sign_ups_per_address),
        ("password_checks_per_user", limits.password_checks_per_user),
        (
            "link_passwords_per_address",
            limits.link_passwords_per_address,
        ),
        ("link_passwords_per_link", limits.link_passwords_per_link),
        ("password_links_per_user", limits.password_links_per_user),
        (
            "password_links_per_address",
            limits.password_links_per_address,
        ),
    ]
}

/// Read the server's limits
///
/// For administrators. Users and API keys may have others of their own.
#[utoipa::path(
    get,
    path = "/api/v1/limits",
    tag = "system",
    operation_id = "getLimits",
    responses((status = 200, description = "The limits.", body = LimitsBody), AdminReadProblems),
)]
pub(crate) async fn read(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Admin).await?;
    let limits = server_limits(app.accounts.limits.settings());
    let limits = limits.into_iter().map(|(name, rule)| LimitBody {
        name,
        rate: rule.map(RateBody::new),
    });
    let body = LimitsBody {
        limits: limits.collect(),
    };
    Ok(Json(body).into_response())
}
