//! `/tags`: the tags of somebody's links, and what becomes of one.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use curt_clicks::report::Reports;
use curt_core::ports::HourRange;
use curt_core::{ClickSubject, OwnerId, PortResult, Scope, UnixMillis};
use curt_links::TagCounts;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::{StatusCode, Uri};

use super::charts::grouped;
use super::confirm::Question;
use super::form::{Form, Mistakes, see_other};
use super::frame::Frame;
use super::link_rows::LinkTag;
use super::turned::{Turned, posted, signed_in};
use super::visitor::Visitor;
use super::{page, refused};
use crate::api::tags::replace;
use crate::caller::{Caller, check_scope};
use crate::problem::Problem;
use crate::state::App;

const PATH: &str = "/tags";
/// Tags on one page, those that most links carry: each is a look at what was counted.
const TAGS_MAX: usize = 100;
const COUNTED: Duration = Duration::from_secs(30 * 86_400);
/// Tags whose clicks are read at the same time.
const COUNTED_TOGETHER: usize = 4;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(PATH, get(show))
        .route("/tags/rename", post(rename))
        .route("/tags/remove", post(remove))
}

#[derive(Template)]
#[template(path = "tags.html")]
struct TagsPage {
    frame: Frame,
    csrf: String,
    rows: Vec<TagRow>,
    /// How many tags there are beyond those that are shown.
    more: usize,
    links_read: String,
    is_complete: bool,
    /// The form about this tag is open, with what was typed into it.
    opened: String,
    typed: String,
    mistakes: Mistakes,
    said: Option<String>,
}

struct TagRow {
    tag: LinkTag,
    links: String,
    /// Of people, in 30 days; `None`: not known now.
    clicks: Option<String>,
}

/// What the page is to say, and the form that was refused.
#[derive(Default)]
struct TagsOutcome {
    said: Option<String>,
    opened: String,
    typed: String,
    mistakes: Mistakes,
}

async fn show(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Turned> {
    let visitor = signed_in(&app, &caller, &uri).await?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let outcome = TagsOutcome {
        said: said(&query),
        ..TagsOutcome::default()
    };
    let shown = tags_page(&app, &visitor, outcome).await?;
    Ok(page(StatusCode::OK, &shown))
}

async fn rename(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request, PATH).await?;
    check_scope(&visitor.principal, Scope::Manage)?;
    let (tag, name) = (form.text("tag"), form.text("name"));
    let replacing = replace(
        &app,
        &caller,
        &visitor.principal,
        tag.clone(),
        Some(name.clone()),
    );
    match replacing.await {
        Ok(replaced) => Ok(done("renamed", replaced.changed, replaced.is_complete)),
        Err(problem) => {
            let renamed = problem.clone().rename_fields(|_| Some("name"));
            let outcome = TagsOutcome {
                opened: tag,
                typed: name,
                mistakes: Mistakes::of_problem(&renamed),
                ..TagsOutcome::default()
            };
            let shown = tags_page(&app, &visitor, outcome).await?;
            Ok(refused(problem, |status| page(status, &shown)))
        }
    }
}

async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request, PATH).await?;
    check_scope(&visitor.principal, Scope::Manage)?;
    let tag = form.text("tag");
    if !Question::is_answered(&form) {
        let question = Question {
            question: format!("Take the tag “{tag}” off all your links?"),
            consequence: "The links stay, and so do the clicks that were counted under the tag."
                .to_owned(),
            yes: "Remove the tag",
            action: "/tags/remove",
            field: "tag",
            value: &tag,
            back: PATH,
        };
        return Ok(question.ask_at(PATH, &app, &visitor));
    }
    let replaced = replace(&app, &caller, &visitor.principal, tag, None).await?;
    Ok(done("removed", replaced.changed, replaced.is_complete))
}

fn done(what: &str, changed: u64, is_complete: bool) -> Response {
    let rest = if is_complete { "" } else { "&rest=yes" };
    see_other(&format!("{PATH}?done={what}&n={changed}{rest}"))
}

/// What was just done, by words and a number of our own in the address.
fn said(query: &Form) -> Option<String> {
    let count: u64 = query.text("n").parse().ok()?;
    let what = match query.text("done").as_str() {
        "renamed" => "The tag has its new name",
        "removed" => "The tag is off",
        _ => return None,
    };
    let links = if count == 1 { "link" } else { "links" };
    let rest = match query.text("rest").as_str() {
        "yes" => " More links have it: do the same again for the rest.",
        _ => "",
    };
    Some(format!("{what} on {} {links}.{rest}", grouped(count)))
}

async fn tags_page(
    app: &App,
    visitor: &Visitor,
    outcome: TagsOutcome,
) -> Result<TagsPage, Problem> {
    check_scope(&visitor.principal, Scope::Read)?;
    let owner = visitor.principal.user;
    let links = Arc::clone(&app.links);
    let counting = async move { links.tag_counts(owner).await };
    let TagCounts {
        mut tags,
        links_read,
        is_complete,
    } = app.scans.read(owner, counting).await??;
    let more = tags.len().saturating_sub(TAGS_MAX);
    if more > 0 {
        tags.sort_by_key(|(_, links)| std::cmp::Reverse(*links));
        tags.truncate(TAGS_MAX);
        tags.sort();
    }
    let names: Vec<Box<str>> = tags.iter().map(|(tag, _)| tag.clone()).collect();
    let clicks = clicks(app, owner, names).await;
    let rows = tags.into_iter().enumerate().map(|(at, (tag, links))| {
        let clicks = clicks.as_ref().and_then(|all| all.get(at));
        TagRow {
            tag: LinkTag::new(&tag),
            links: grouped(links),
            clicks: clicks.map(|clicks| grouped(*clicks)),
        }
    });
    Ok(TagsPage {
        frame: Frame::new(app, Some(visitor)).at(PATH),
        csrf: visitor.csrf.clone(),
        rows: rows.collect(),
        more,
        links_read: grouped(links_read),
        is_complete,
        opened: outcome.opened,
        typed: outcome.typed,
        mistakes: outcome.mistakes,
        said: outcome.said,
    })
}

/// The clicks of each tag, left out where they cannot be told right now.
async fn clicks(app: &App, owner: OwnerId, tags: Vec<Box<str>>) -> Option<Vec<u64>> {
    let reports = Arc::clone(app.reports.as_ref()?);
    let now = app.clock.now();
    let reading = async move { count(&reports, owner, &tags, now).await };
    match app.scans.read(owner, reading).await {
        Ok(Ok(clicks)) => Some(clicks),
        Ok(Err(error)) => {
            tracing::debug!(%error, "clicks of tags not read");
            None
        }
        Err(_overloaded) => None,
    }
}

async fn count(
    reports: &Reports,
    owner: OwnerId,
    tags: &[Box<str>],
    now: UnixMillis,
) -> PortResult<Vec<u64>> {
    let hours = HourRange {
        from: now.minus(COUNTED),
        before: UnixMillis::MAX,
    };
    let subjects = tags.iter().map(|tag| ClickSubject::tag(owner, tag));
    let subjects: Vec<ClickSubject> = subjects.collect();
    let counts = subjects.into_iter().map(|subject| async move {
        let totals = reports.totals(&subject, hours).await?;
        PortResult::Ok(totals.human)
    });
    stream::iter(counts)
        .buffered(COUNTED_TOGETHER)
        .try_collect()
        .await
}
