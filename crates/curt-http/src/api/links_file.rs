//! `/api/v1/links.csv`: links as a file.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use curt_accounts::Principal;
use curt_clicks::report::Reports;
use curt_core::limits::PAGE_LINKS_MAX;
use curt_core::ports::{ListPage, ListQuery};
use curt_core::{EffectiveState, Link, OwnerId, Scope};
use curt_links::{Links, Who};
use futures_util::{StreamExt, stream};
use http::Uri;

use super::csv_file::{self, Lines};
use super::documented::ListProblems;
use super::link_body::LinkBody;
use super::link_view::{self, counted};
use super::list_query::{self, ListFileParams, ListRequest};
use super::listed;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::scans::Export;
use crate::state::App;

const FILE: &str = "attachment; filename=\"links.csv\"";

const COLUMNS: [&str; 16] = [
    "key",
    "short_url",
    "target",
    "title",
    "tags",
    "state",
    "visibility",
    "clicks",
    "max_clicks",
    "created_at",
    "updated_at",
    "expires_at",
    "valid_since",
    "redirect_status",
    "forward_query",
    "owner_id",
];

/// Download links
///
/// All links that the filters leave, as a file of CSV. Tags are separated by spaces.
#[utoipa::path(
    get,
    path = "/api/v1/links.csv",
    tag = "links",
    operation_id = "downloadLinks",
    params(ListFileParams),
    responses((status = 200, description = "The links.", body = String, content_type = "text/csv"), ListProblems),
)]
pub(crate) async fn file(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let principal = caller.require_scope(&app, Scope::Read).await?;
    let asked = list_query::parse_for_file(uri.query().unwrap_or_default())?;
    download(app, &principal, asked).await
}

/// What reads one page after the other.
struct LinksFile {
    app: Arc<App>,
    links: Arc<Links>,
    reports: Option<Arc<Reports>>,
    export: Export,
    who: Who,
    query: ListQuery,
}

/// The file, page by page as the client takes it. The first page is read before the answer begins, so that a store that is
/// away is a problem and not a file that breaks off.
pub(crate) async fn download(
    app: Arc<App>,
    principal: &Principal,
    asked: ListRequest,
) -> Result<Response, Problem> {
    let (who, query) = listed::whose(principal, asked)?;
    let mut file = LinksFile {
        links: Arc::clone(&app.links),
        reports: app.reports.clone(),
        export: app.scans.begin_export(principal.user)?,
        app,
        who,
        query: ListQuery {
            limit: PAGE_LINKS_MAX,
            cursor: None,
            ..query
        },
    };
    let mut lines = Lines::new(&COLUMNS);
    file.read_into(&mut lines).await?;
    let head = stream::iter([Ok(lines.into_text())]);
    let rest = stream::try_unfold(file, |mut file| async move {
        if file.query.cursor.is_none() {
            return Ok::<_, io::Error>(None);
        }
        let mut lines = Lines::empty();
        let read = file.read_into(&mut lines).await;
        read.map_err(|_| io::ErrorKind::Other)?;
        Ok(Some((lines.into_text(), file)))
    });
    Ok(csv_file::file(FILE, Body::from_stream(head.chain(rest))))
}

/// The file of links that were read already.
pub(crate) async fn of_links(
    app: &App,
    asker: OwnerId,
    links: &[Link],
) -> Result<Response, Problem> {
    let mut lines = Lines::new(&COLUMNS);
    let clicks = link_view::clicks(app, asker, links).await;
    push(app, &mut lines, links, clicks).await?;
    Ok(csv_file::file(FILE, Body::from(lines.into_text())))
}

impl LinksFile {
    /// Appends the next page.
    async fn read_into(&mut self, lines: &mut Lines) -> Result<(), Problem> {
        let (links, who, query) = (Arc::clone(&self.links), self.who, self.query.clone());
        let reading = async move { links.list(who, query).await };
        let ListPage { links, next } = self.export.read(reading).await??;
        self.query.cursor = next;
        let clicks = match &self.reports {
            None => None,
            Some(reports) => {
                let (reports, counted) = (Arc::clone(reports), counted(&links));
                let now = self.app.clock.now();
                let reading = async move { reports.link_clicks(&counted, now).await };
                Some(self.export.read(reading).await??)
            }
        };
        push(&self.app, lines, &links, clicks).await
    }
}

async fn push(
    app: &App,
    lines: &mut Lines,
    links: &[Link],
    clicks: Option<Vec<u64>>,
) -> Result<(), Problem> {
    let states = app.links.effective_states(links).await?;
    for (at, (link, state)) in links.iter().zip(states).enumerate() {
        let clicks = clicks.as_ref().and_then(|all| all.get(at).copied());
        let view = LinkBody::new(link, state, clicks, &app.public);
        lines.push(&cells(link, state, view));
    }
    Ok(())
}

fn cells(link: &Link, state: EffectiveState, view: LinkBody) -> [String; 16] {
    let or_none =
        |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let time = |at: Option<super::Rfc3339>| at.map_or_else(String::new, |at| at.to_string());
    [
        view.key,
        view.short_url,
        view.target,
        view.title.unwrap_or_default(),
        view.tags.join(" "),
        state.name().to_owned(),
        link.visibility.name().to_owned(),
        or_none(view.clicks),
        or_none(view.max_clicks),
        view.created_at.to_string(),
        view.updated_at.to_string(),
        time(view.expires_at),
        time(view.valid_since),
        link.status.code().to_string(),
        view.forward_query.to_string(),
        view.owner_id
            .map_or_else(String::new, |owner| owner.0.0.to_string()),
    ]
}
