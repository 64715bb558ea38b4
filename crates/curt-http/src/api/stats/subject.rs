//! What a report is about, and whether whoever asks may see it.

use std::sync::Arc;

use curt_accounts::Principal;
use curt_clicks::report::Reports;
use curt_core::limits::TAG_BYTES_MAX;
use curt_core::{ClickSubject, OwnerId, Scope};
use curt_links::Who;
use utoipa::IntoParams;

use crate::api::list_query::{self, OwnerFilter};
use crate::caller::{Caller, check_scope};
use crate::problem::{Problem, ProblemCode};
use crate::scans::Scans;
use crate::state::App;

const _: () = assert!(TAG_BYTES_MAX == 64); // the parameter below can hold only a literal number

/// Which links, as the OpenAPI document shows it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct LinksParams {
    /// Only clicks of links that had this tag when they were followed.
    #[param(nullable = false, min_length = 1, max_length = 64, example = "spring")]
    tag: Option<String>,
    /// Whose links: your own unless said otherwise. For administrators also another user's id, or `all`, which includes
    /// clicks that met no link.
    #[param(nullable = false, pattern = "^(all|[1-9][0-9]{0,19})$")]
    owner_id: Option<String>,
}

/// Which links, as it was asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Which {
    pub(super) tag: Option<String>,
    pub(super) owner: Option<String>,
}

impl Which {
    /// Where a report is not on somebody's links, these parameters do not exist.
    pub(super) fn refuse(&self) -> Result<(), Problem> {
        for (name, value) in [("tag", &self.tag), ("owner_id", &self.owner)] {
            if value.is_some() {
                let message = "There is no such parameter.";
                return Err(Problem::invalid_field(name, "unknown", message));
            }
        }
        Ok(())
    }
}

/// Something that the caller may see reports on.
pub(super) struct Subject {
    pub(super) reports: Arc<Reports>,
    pub(super) clicks: ClickSubject,
    pub(super) asker: OwnerId,
    pub(super) scans: Arc<Scans>,
}

/// What to look at again while a feed goes on.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Link(String),
    Links(Which),
    Orphans,
}

impl Wanted {
    pub(super) async fn allowed(&self, app: &App, caller: &Caller) -> Result<Subject, Problem> {
        match self {
            Self::Link(key) => link(app, caller, key).await,
            Self::Links(which) => links(app, caller, which).await,
            Self::Orphans => orphans(app, caller).await,
        }
    }
}

async fn link(app: &App, caller: &Caller, key: &str) -> Result<Subject, Problem> {
    let principal = caller.require_scope(app, Scope::Read).await?;
    let link = app.links.get(Who::reachable_by(&principal), key).await?;
    // A key may have been another link's before, which was of another generation.
    let clicks = ClickSubject::Link(link.id, link.revision.generation);
    subject(app, &principal, clicks)
}

async fn links(app: &App, caller: &Caller, which: &Which) -> Result<Subject, Problem> {
    let principal = caller.require_scope(app, Scope::Read).await?;
    let own = OwnerFilter::One(principal.user);
    let owner = which.owner.as_deref().map(list_query::owner).transpose();
    let owner = owner
        .map_err(|error| Problem::invalid(vec![error]))?
        .unwrap_or(own);
    if owner != own {
        check_scope(&principal, Scope::Admin)?;
    }
    let tag = which.tag.as_deref();
    if tag.is_some_and(|tag| tag.is_empty() || tag.len() > TAG_BYTES_MAX) {
        let message = format!("A tag has 1 to {TAG_BYTES_MAX} bytes.");
        return Err(Problem::invalid_field("tag", "length", message));
    }
    let clicks = match (owner, tag) {
        (OwnerFilter::All, None) => ClickSubject::Everything,
        (OwnerFilter::All, Some(_)) => {
            let message = "Tags are counted for each owner: name one.";
            return Err(Problem::invalid_field("tag", "value", message));
        }
        (OwnerFilter::One(owner), None) => ClickSubject::Owner(owner),
        (OwnerFilter::One(owner), Some(tag)) => ClickSubject::tag(owner, tag),
    };
    subject(app, &principal, clicks)
}

async fn orphans(app: &App, caller: &Caller) -> Result<Subject, Problem> {
    let principal = caller.require_scope(app, Scope::Admin).await?;
    subject(app, &principal, ClickSubject::Orphans)
}

fn subject(app: &App, asker: &Principal, clicks: ClickSubject) -> Result<Subject, Problem> {
    let reports = app.reports.clone().ok_or_else(|| {
        Problem::new(ProblemCode::NotFound).detail("This server does not count clicks.")
    })?;
    Ok(Subject {
        reports,
        clicks,
        asker: asker.user,
        scans: Arc::clone(&app.scans),
    })
}
