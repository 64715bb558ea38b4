//! What the first screen shows whoever is signed in, beside the form: their newest links, and the last 24 hours.

use std::sync::Arc;

use curt_accounts::Principal;
use curt_clicks::report::{Reports, Summary};
use curt_core::ports::ListQuery;
use curt_core::{ClickSubject, Scope};
use curt_links::Who;

use super::charts::{SeriesChart, grouped};
use super::link_rows::{LinkRow, rows};
use super::reports::AskedReport;
use crate::api::link_view;
use crate::problem::Problem;
use crate::state::App;

const RECENT_MAX: usize = 5;

pub(super) struct Overview {
    pub(super) recent: Vec<LinkRow>,
    /// `None`: clicks are not counted, or cannot be read right now.
    pub(super) today: Option<LastDay>,
}

pub(super) struct LastDay {
    pub(super) humans: String,
    pub(super) others: String,
    pub(super) series: SeriesChart,
}

impl Overview {
    pub(super) async fn load(app: &App, principal: &Principal) -> Result<Option<Self>, Problem> {
        if !principal.may(Scope::Read) {
            return Ok(None);
        }
        let (links, owner) = (Arc::clone(&app.links), principal.user);
        let query = ListQuery {
            limit: RECENT_MAX,
            ..ListQuery::default()
        };
        let listing = async move { links.list(Who::Owner(owner), query).await };
        let found = app.scans.read(owner, listing).await??.links;
        let clicks = link_view::clicks(app, owner, &found).await;
        Ok(Some(Self {
            recent: rows(app, &found, clicks.as_deref()).await?,
            today: last_day(app, principal).await,
        }))
    }
}

/// The form is worth showing without it: what cannot be read now is left out.
async fn last_day(app: &App, principal: &Principal) -> Option<LastDay> {
    let reports = Arc::clone(app.reports.as_ref()?);
    let asked = AskedReport::last_day(app.clock.now()).ok()?;
    let subject = ClickSubject::Owner(principal.user);
    let wanted = asked.clone();
    let reading = async move { summary(&reports, &subject, &wanted).await };
    let summary = app.scans.read(principal.user, reading).await.ok()??;
    let others = summary.totals.total().saturating_sub(summary.totals.human);
    Some(LastDay {
        humans: grouped(summary.totals.human),
        others: grouped(others),
        series: SeriesChart::new(&summary, asked.bucket()),
    })
}

async fn summary(
    reports: &Reports,
    subject: &ClickSubject,
    asked: &AskedReport,
) -> Option<Summary> {
    let read = asked.summary_and_tops(reports, subject, &[]).await;
    let read = read.inspect_err(|error| tracing::debug!(%error, "clicks of the last day not read"));
    let (summary, _) = read.ok()?;
    Some(summary)
}
