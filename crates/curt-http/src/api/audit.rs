//! `/api/v1/audit`: what was done that touches security.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use curt_core::limits::{EMAIL_BYTES_MAX, PAGE_ACCOUNTS_MAX};
use curt_core::ports::AuditEntry;
use curt_core::{OwnerId, PortError, Scope};
use http::Uri;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

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

/// Which entries, as the OpenAPI document shows it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct AuditParams {
    /// Only this action.
    #[param(
        nullable = false,
        pattern = "^[a-z_]{1,40}$",
        example = "user_disabled"
    )]
    action: Option<String>,
    /// Only what this user did.
    #[param(inline, nullable = false, value_type = Option<UserId>)]
    actor_id: Option<UserId>,
    /// Only what was done to something with this text in it, upper or lower case alike.
    #[param(nullable = false, max_length = 254, example = "ada@")]
    subject: Option<String>,
}

/// Which entries are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditFilter {
    action: Option<String>,
    actor: Option<OwnerId>,
    subject: Option<String>,
}

/// Entries that are looked at for a page.
const LOOKED_AT_MAX: usize = 2_000;

impl AuditFilter {
    pub(crate) fn parse(
        action: Option<String>,
        actor: Option<&str>,
        subject: Option<String>,
    ) -> Result<Self, Problem> {
        let is_name = |text: &String| {
            let symbol = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            (1..=40).contains(&text.len()) && text.bytes().all(symbol)
        };
        if action.as_ref().is_some_and(|action| !is_name(action)) {
            let why = "Must be an action, such as user_disabled.";
            return Err(Problem::invalid_field("action", "value", why));
        }
        if subject
            .as_ref()
            .is_some_and(|text| text.len() > EMAIL_BYTES_MAX)
        {
            let why = format!("Must have at most {EMAIL_BYTES_MAX} bytes.");
            return Err(Problem::invalid_field("subject", "too_long", why));
        }
        Ok(Self {
            action,
            actor: query::user("actor_id", actor)?.map(|id| id.0),
            subject: subject.map(|text| text.to_lowercase()),
        })
    }

    fn is_empty(&self) -> bool {
        self.action.is_none() && self.actor.is_none() && self.subject.is_none()
    }

    fn takes(&self, entry: &AuditEntry) -> bool {
        let action = self.action.as_deref();
        let subject = self.subject.as_deref();
        action.is_none_or(|action| action == &*entry.action)
            && self.actor.is_none_or(|actor| entry.actor == Some(actor))
            && subject.is_none_or(|text| entry.subject.to_lowercase().contains(text))
    }
}

/// A page of entries, newest first, and the cursor of the next one.
pub(crate) async fn find(
    app: &App,
    asker: OwnerId,
    asked: PageRequest,
    filter: AuditFilter,
) -> Result<(Vec<(u64, AuditEntry)>, Option<String>), Problem> {
    let audit = Arc::clone(&app.accounts.audit);
    let reading = async move {
        let mut found = Vec::new();
        let (mut before, mut looked_at) = (asked.after, 0);
        // One beyond the page, which tells whether there is a next.
        while found.len() < asked.read_max() && looked_at < LOOKED_AT_MAX {
            let step = match filter.is_empty() {
                true => asked.read_max(),
                false => PAGE_ACCOUNTS_MAX,
            };
            let read = audit.list(before, step).await?;
            looked_at += read.len();
            let Some((last, _)) = read.last() else {
                return Ok((found, None));
            };
            let (last, is_end) = (*last, read.len() < step);
            found.extend(read.into_iter().filter(|(_, entry)| filter.takes(entry)));
            if is_end {
                return Ok((found, None));
            }
            before = Some(last);
        }
        Ok::<_, PortError>((found, before))
    };
    let (mut found, before) = app.scans.read(asker, reading).await??;
    let next = asked.cut(&mut found, |(number, _)| *number);
    // A page that was not filled goes on where looking ended.
    let next = next.or_else(|| before.map(|before| before.to_string()));
    Ok((found, next))
}

/// Read the audit log
///
/// For administrators: sign-ins, changes of accounts, keys and permissions, and links switched off. With filters a
/// page may be short, or empty, and still have a `next`: only so many entries are looked at for one.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "users",
    operation_id = "listAudit",
    params(PageParams, AuditParams),
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
    let names = ["cursor", "limit", "action", "actor_id", "subject"];
    let [cursor, limit, action, actor, subject] =
        query::values(uri.query().unwrap_or_default(), names)?;
    let asked = PageRequest::parse(cursor.as_deref(), limit.as_deref())?;
    let filter = AuditFilter::parse(action, actor.as_deref(), subject)?;
    let (entries, next) = find(&app, principal.user, asked, filter).await?;
    let body = AuditBody {
        entries: entries.into_iter().map(AuditEntryBody::new).collect(),
        next,
    };
    paging::page(&uri, body.next.as_deref(), &body)
}
