//! `/clicks`: the clicks of all links together, of those with a tag, and of requests that met no link.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use curt_core::limits::TAG_BYTES_MAX;
use curt_core::{ClickSubject, Role, Scope};
use http::{StatusCode, Uri};
use url::form_urlencoded;

use super::form::Form;
use super::frame::Frame;
use super::page;
use super::reports::{self, AskedReport, ReportView};
use super::turned::{Turned, signed_in};
use super::visitor::Visitor;
use crate::caller::{Caller, check_scope};
use crate::problem::Problem;
use crate::state::App;

const PATH: &str = "/clicks";
const ORPHANS_PATH: &str = "/clicks/orphans";

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(PATH, get(show))
        .route(ORPHANS_PATH, get(show_orphans))
}

#[derive(Template)]
#[template(path = "clicks.html")]
struct ClicksPage {
    frame: Frame,
    /// Whether there are others to choose from.
    has_tabs: bool,
    is_admin: bool,
    whose: Whose,
    /// `None`: this server does not count clicks.
    report: Option<ReportView>,
    asked: AskedReport,
    path: &'static str,
    /// The address of the live feed, if there is one.
    live: Option<String>,
    files: Vec<(&'static str, String)>,
}

/// Whose clicks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    Own,
    Tag(String),
    Everybody,
    Orphans,
}

impl Whose {
    fn is(&self, other: Self) -> bool {
        *self == other
    }

    fn is_tag(&self) -> bool {
        matches!(self, Self::Tag(_))
    }

    fn title(&self) -> String {
        match self {
            Self::Own => "Clicks on your links.".to_owned(),
            Self::Tag(tag) => format!("Clicks on “{tag}”."),
            Self::Everybody => "Clicks on this server.".to_owned(),
            Self::Orphans => "Clicks that met no link.".to_owned(),
        }
    }

    fn lead(&self) -> &'static str {
        match self {
            Self::Own => "All links together.",
            Self::Tag(_) => "Links that had this tag when they were followed.",
            Self::Everybody => "Everybody's links, and requests that met none.",
            Self::Orphans => "Mistyped keys, links that are gone, and the start page itself.",
        }
    }

    /// Fields that keep the choice when the time is changed.
    fn kept(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Tag(tag) => Some(("tag", tag)),
            Self::Everybody => Some(("owner", "all")),
            Self::Own | Self::Orphans => None,
        }
    }

    /// The same as the end of an address that has a query already.
    fn suffix(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        match self.kept() {
            Some((name, value)) => {
                query.append_pair(name, value);
                format!("&{}", query.finish())
            }
            None => String::new(),
        }
    }

    /// As the API is asked for it.
    fn api_query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        match self {
            Self::Tag(tag) => query.append_pair("tag", tag),
            Self::Everybody => query.append_pair("owner_id", "all"),
            Self::Own | Self::Orphans => return String::new(),
        };
        query.finish()
    }
}

async fn show(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Turned> {
    let visitor = signed_in(&app, &caller, &uri).await?;
    check_scope(&visitor.principal, Scope::Read)?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let tag = query.text("tag");
    let owner = visitor.principal.user;
    let (whose, subject) = match (tag.as_str(), query.text("owner").as_str()) {
        ("", "all") => {
            check_scope(&visitor.principal, Scope::Admin)?;
            (Whose::Everybody, ClickSubject::Everything)
        }
        ("", _) => (Whose::Own, ClickSubject::Owner(owner)),
        (text, _) if text.len() > TAG_BYTES_MAX => {
            let message = format!("A tag has at most {TAG_BYTES_MAX} bytes.");
            return Err(Problem::invalid_field("tag", "length", message).into());
        }
        (text, _) => (Whose::Tag(tag.clone()), ClickSubject::tag(owner, text)),
    };
    let shown = clicks_page(&app, &visitor, &query, whose, subject).await?;
    Ok(page(StatusCode::OK, &shown))
}

async fn show_orphans(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Turned> {
    let visitor = signed_in(&app, &caller, &uri).await?;
    check_scope(&visitor.principal, Scope::Admin)?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let (whose, subject) = (Whose::Orphans, ClickSubject::Orphans);
    let shown = clicks_page(&app, &visitor, &query, whose, subject).await?;
    Ok(page(StatusCode::OK, &shown))
}

async fn clicks_page(
    app: &App,
    visitor: &Visitor,
    query: &Form,
    whose: Whose,
    subject: ClickSubject,
) -> Result<ClicksPage, Problem> {
    let asked = AskedReport::parse(query, app.clock.now()).map_err(reports::no_such_time)?;
    let report = match app.reports {
        Some(_) => Some(reports::load(app, visitor.principal.user, subject, &asked).await?),
        None => None,
    };
    let api_query = whose.api_query();
    let is_orphans = whose == Whose::Orphans;
    let mut files = match is_orphans {
        true => Vec::new(),
        false => reports::files("/api/v1", &asked),
    };
    if !api_query.is_empty() {
        for (_, address) in &mut files {
            *address = format!("{address}&{api_query}");
        }
    }
    let is_admin = visitor.user.role == Role::Admin;
    let has_tabs = is_admin || whose.is_tag();
    let frame = Frame::new(app, Some(visitor));
    Ok(ClicksPage {
        frame: match has_tabs {
            true => frame.within(PATH),
            false => frame.at(PATH),
        },
        has_tabs,
        is_admin,
        path: if is_orphans { ORPHANS_PATH } else { PATH },
        live: (!is_orphans).then(|| format!("/api/v1/live?{api_query}")),
        files,
        whose,
        report,
        asked,
    })
}
