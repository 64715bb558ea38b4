//! `/api/v1/audit`: what was done that touches security.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use curt_core::Scope;
use curt_core::ports::AuditEntry;
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::documented::AdminListProblems;
use super::names::UserId;
use super::paging::{self, PageParams, PageRequest};
use super::query;
use super::time::Rfc3339;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::App;

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
    actor_id: Option<UserId>,
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
            actor_id: entry.actor.map(UserId),
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
    /// The cursor of the next page; `null` on the last one.
    #[schema(required = true, example = json!(null))]
    next: Option<String>,
}

/// Read the audit log
///
/// For administrators: sign-ins, changes of accounts, keys and permissions, and links switched off.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "users",
    operation_id = "listAudit",
    params(PageParams),
    responses(
        (status = 200, description = "One page of the log.", body = AuditBody, headers(
            ("Link" = String, description = "The address of the next page, with `rel=\"next\"`, if there is one."))),
        AdminListProblems,
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Admin).await?;
    let [cursor, limit] = query::values(uri.query().unwrap_or_default(), ["cursor", "limit"])?;
    let asked = PageRequest::parse(cursor.as_deref(), limit.as_deref())?;
    let audit = Arc::clone(&app.accounts.audit);
    let reading = async move { audit.list(asked.after, asked.read_max()).await };
    let mut entries = app.scans.read(principal.user, reading).await??;
    let next = asked.cut(&mut entries, |(number, _)| *number);
    let body = AuditBody {
        entries: entries.into_iter().map(AuditEntryBody::new).collect(),
        next,
    };
    paging::page(&uri, body.next.as_deref(), &body)
}
