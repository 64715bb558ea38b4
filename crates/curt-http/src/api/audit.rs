//! `/api/v1/audit`: what was done that touches security.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use curt_core::Scope;
use curt_core::ports::AuditEntry;
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::documented::AdminListProblems;
use super::names::UserId;
use super::query;
use super::time::Rfc3339;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

/// The largest whole number that every JSON reader keeps exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Something that was done.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditEntryBody {
    /// Grows from entry to entry.
    number: u64,
    at: Rfc3339,
    /// Who did it. `null`: somebody who was not signed in, or the operator by command.
    #[schema(required = true)]
    actor: Option<UserId>,
    #[schema(example = "signed_in")]
    action: String,
    /// What it was done to: an email, a key's prefix, a link's key.
    #[schema(example = "ada@example.com")]
    subject: String,
    /// Where the request came from, if it came by network.
    #[schema(required = true, example = "192.0.2.7")]
    address: Option<String>,
}

impl AuditEntryBody {
    fn new((number, entry): (u64, AuditEntry)) -> Self {
        Self {
            number,
            at: Rfc3339(entry.at),
            actor: entry.actor.map(UserId),
            action: entry.action.into(),
            subject: entry.subject.into(),
            address: entry.address.map(Into::into),
        }
    }
}

/// One page of the audit log.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AuditPage)]
pub(crate) struct AuditBody {
    /// Newest first.
    entries: Vec<AuditEntryBody>,
    /// What to ask for with `before` to get the next page; `null` on the last one.
    #[schema(required = true)]
    next: Option<u64>,
}

/// Read the audit log
///
/// For administrators: sign-ins, changes of accounts, keys and permissions, and links switched off.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "users",
    operation_id = "listAudit",
    params(
        ("before" = Option<u64>, Query, nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_u64,
            description = "The `next` of the page before."),
        ("limit" = Option<u16>, Query, nullable = false, minimum = 1, maximum = 200, example = 50,
            description = "How many entries a page has at most; 50 unless said otherwise."),
    ),
    responses((status = 200, description = "One page of the log.", body = AuditBody), AdminListProblems),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let [before, limit] = query::values(uri.query().unwrap_or_default(), ["before", "limit"])?;
    let before = before.map(|before| {
        query::number(&before)
            .filter(|before| *before <= NUMBER_MAX)
            .ok_or_else(|| {
                Problem::invalid_field("before", "value", "Must be a number of an entry.")
            })
    });
    let limit = query::limit(limit.as_deref())?;
    let (audit, before) = (Arc::clone(&app.accounts.audit), before.transpose()?);
    let reading = async move { audit.list(before, limit).await };
    let entries = app.scans.read(principal.user, reading).await??;
    let last = entries.last().filter(|_| entries.len() == limit);
    let body = AuditBody {
        next: last.map(|(number, _)| *number),
        entries: entries.into_iter().map(AuditEntryBody::new).collect(),
    };
    Ok(Json(body).into_response())
}
