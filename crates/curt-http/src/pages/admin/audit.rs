//! `/admin/audit`: what was done that touches security.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use curt_core::names::audit as actions;
use curt_core::ports::AuditEntry;
use http::{StatusCode, Uri};
use url::form_urlencoded;

use super::{AdminBar, Refused, administrator, frame};
use crate::api::audit::{AuditFilter, find};
use crate::api::paging::PageRequest;
use crate::caller::Caller;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::{PageTime, page, refused};
use crate::problem::Problem;
use crate::state::App;

const PATH: &str = "/admin/audit";

/// Those that can be chosen, as the log names them.
const ACTIONS: [&str; 23] = [
    actions::SIGNED_IN,
    actions::SIGN_IN_FAILED,
    actions::SIGNED_OUT,
    actions::SESSION_ENDED,
    actions::SIGNED_UP,
    actions::SETUP_DONE,
    actions::PASSWORD_CHANGED,
    actions::USER_ADDED,
    actions::USER_CHANGED,
    actions::USER_DISABLED,
    actions::USER_ENABLED,
    actions::USER_REMOVED,
    actions::INVITED,
    actions::INVITE_REVOKED,
    actions::API_KEY_ADDED,
    actions::API_KEY_ROTATED,
    actions::API_KEY_REVOKED,
    actions::PERMISSION_GRANTED,
    actions::PERMISSION_REVOKED,
    actions::LINK_DISABLED,
    actions::LINK_ENABLED,
    actions::VISIBILITY_CHANGED,
    actions::CLICKS_ERASED,
];

#[derive(Template)]
#[template(path = "admin_audit.html")]
struct AuditPage {
    frame: Frame,
    bar: AdminBar,
    entries: Vec<ShownEntry>,
    actions: Vec<ActionChoice>,
    actor_id: String,
    subject: String,
    is_filtered: bool,
    first: Option<String>,
    next: Option<String>,
}

struct ActionChoice {
    name: &'static str,
    words: String,
    is_chosen: bool,
}

struct ShownEntry {
    at: PageTime,
    actor: Option<u64>,
    action: String,
    subject: String,
    address: String,
}

impl ShownEntry {
    fn of(entry: AuditEntry) -> Self {
        Self {
            at: entry.at.into(),
            actor: entry.actor.map(|actor| actor.0),
            action: entry.action.replace('_', " "),
            subject: entry.subject.into(),
            address: entry.address.map(String::from).unwrap_or_default(),
        }
    }
}

/// What a query asks for; what is empty is not asked for.
struct Asked {
    action: Option<String>,
    actor_id: Option<String>,
    subject: Option<String>,
    cursor: Option<String>,
}

impl Asked {
    fn of(uri: &Uri) -> Self {
        let form = Form::parse(uri.query().unwrap_or_default().as_bytes());
        let field = |name| Some(form.text(name)).filter(|text| !text.is_empty());
        Self {
            action: field("action"),
            actor_id: field("actor_id"),
            subject: field("subject"),
            cursor: field("cursor"),
        }
    }

    /// The address of the same filters at another position.
    fn address(&self, cursor: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("action", self.action.as_deref()),
            ("actor_id", self.actor_id.as_deref()),
            ("subject", self.subject.as_deref()),
            ("cursor", cursor),
        ] {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("{PATH}?{}", query.finish())
    }

    async fn read(
        &self,
        app: &App,
        asker: curt_core::OwnerId,
    ) -> Result<(Vec<(u64, AuditEntry)>, Option<String>), Problem> {
        let at = PageRequest::parse(self.cursor.as_deref(), None)?;
        let (action, subject) = (self.action.clone(), self.subject.clone());
        let filter = AuditFilter::parse(action, self.actor_id.as_deref(), subject)?;
        find(app, asker, at, filter).await
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Refused> {
    let administrator = administrator(&app, &caller, &uri).await?;
    let asked = Asked::of(&uri);
    let read = asked.read(&app, administrator.principal.user).await;
    let bar = AdminBar::new(PATH, &administrator);
    let (found, problem) = match read {
        Ok(found) => (found, None),
        Err(problem) if problem.errors().is_empty() => return Err(problem.into()),
        Err(problem) => ((Vec::new(), None), Some(problem)),
    };
    let bar = match &problem {
        Some(problem) => bar.failed(problem),
        None => bar,
    };
    let (entries, next) = found;
    let shown = AuditPage {
        frame: frame(&app, &administrator),
        bar,
        entries: entries
            .into_iter()
            .map(|(_, entry)| ShownEntry::of(entry))
            .collect(),
        actions: ACTIONS
            .into_iter()
            .map(|name| ActionChoice {
                name,
                words: name.replace('_', " "),
                is_chosen: asked.action.as_deref() == Some(name),
            })
            .collect(),
        is_filtered: asked.action.is_some() || asked.actor_id.is_some() || asked.subject.is_some(),
        first: asked.cursor.is_some().then(|| asked.address(None)),
        next: next.map(|next| asked.address(Some(&next))),
        actor_id: asked.actor_id.unwrap_or_default(),
        subject: asked.subject.unwrap_or_default(),
    };
    Ok(match problem {
        Some(problem) => refused(problem, |status| page(status, &shown)).into_response(),
        None => page(StatusCode::OK, &shown),
    })
}
