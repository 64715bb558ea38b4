//! `/links/{key}`: one link, how often it was followed, and how it is changed.

mod edit;
mod fields;
mod permissions;
mod switch;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use curt_accounts::Principal;
use curt_core::{ClickSubject, EffectiveState, Link, Role, Scope};
use curt_links::Who;
use http::{StatusCode, Uri};

use super::charts::grouped;
use super::form::Form;
use super::frame::Frame;
use super::link_rows::{LinkTag, StateWords, audience, without_scheme};
use super::page;
use super::reports::{self, AskedReport, ReportView};
use super::turned::{Turned, posted, signed_in};
use super::visitor::Visitor;
use super::{PageTime, links};
use crate::api::link_view;
use crate::caller::{Caller, check_scope};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/links/{key}", get(show))
        .route("/links/{key}/edit", get(edit::show).post(edit::save))
        .route("/links/{key}/delete", post(switch::delete))
        .route("/links/{key}/restore", post(switch::restore))
        .route("/links/{key}/switch", post(switch::switch))
        .route("/links/{key}/permissions", post(permissions::grant))
        .route("/links/{key}/permissions/revoke", post(permissions::revoke))
}

/// What the pages of a link have above their content.
struct LinkHead {
    key: String,
    short_url: String,
    short: String,
    title: String,
    target: String,
    tags: Vec<LinkTag>,
    state: StateWords,
    is_deleted: bool,
    is_disabled: bool,
    audience: &'static str,
    made: PageTime,
    /// Of people, since the link was made; `None`: not known now.
    clicks: Option<String>,
    max_clicks: Option<String>,
    is_others: bool,
}

#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage {
    frame: Frame,
    head: LinkHead,
    said: Option<&'static str>,
    /// `None`: this server does not count clicks.
    report: Option<ReportView>,
    asked: AskedReport,
    /// The address of this page, and that of its live feed.
    path: String,
    live: String,
    /// Addresses of files with the same report.
    files: Vec<(&'static str, String)>,
}

async fn show(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Turned> {
    let visitor = signed_in(&app, &caller, &uri).await?;
    let link = find(&app, &visitor.principal, key).await?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let asked = AskedReport::parse(&query, app.clock.now()).map_err(reports::no_such_time)?;
    let subject = ClickSubject::Link(link.id.clone(), link.revision.generation);
    let report = match app.reports {
        Some(_) => Some(reports::load(&app, visitor.principal.user, subject, &asked).await?),
        None => None,
    };
    let key = link.id.key.as_str();
    let shown = LinkPage {
        said: said(&query.text("done")),
        path: format!("{}/{key}", links::PATH),
        live: format!("/api/v1/links/{key}/live"),
        files: reports::files(&format!("/api/v1/links/{key}"), &asked),
        head: LinkHead::read(&app, &visitor, &link).await?,
        frame: Frame::new(&app, Some(&visitor)).within(links::PATH),
        report,
        asked,
    };
    Ok(page(StatusCode::OK, &shown))
}

/// What was just done, by one of our own words in the address.
fn said(done: &str) -> Option<&'static str> {
    Some(match done {
        "saved" => "Your changes are saved.",
        "restored" => "The link leads on again.",
        "disabled" => "The link is switched off.",
        "enabled" => "The link is switched on.",
        "granted" => "They may follow the link now.",
        "revoked" => "The permission is taken back.",
        _ => return None,
    })
}

/// A link that the visitor may see.
async fn find(
    app: &App,
    principal: &Principal,
    key: Result<Path<String>, PathRejection>,
) -> Result<Link, Problem> {
    check_scope(principal, Scope::Read)?;
    let Path(key) = key.map_err(|_| Problem::new(ProblemCode::LinkNotFound))?;
    let link = app.links.get(Who::reachable_by(principal), &key).await;
    link.map_err(|error| match Problem::from(error) {
        problem if problem.code() == ProblemCode::LinkNotFound => problem.detail(
            "You have no link of this name. It may be another's, or have been removed for good.",
        ),
        problem => problem,
    })
}

/// A form that was sent about a link that the visitor may change.
struct PostedForm {
    visitor: Visitor,
    link: Link,
    form: Form,
}

/// Reads a form about a link, for whoever has the scope.
async fn posted_about(
    app: &App,
    caller: &Caller,
    key: Result<Path<String>, PathRejection>,
    request: Request,
    scope: Scope,
) -> Result<PostedForm, Turned> {
    let (visitor, form) = posted(app, caller, request, links::PATH).await?;
    check_scope(&visitor.principal, scope)?;
    let link = find(app, &visitor.principal, key).await?;
    Ok(PostedForm {
        visitor,
        link,
        form,
    })
}

impl LinkHead {
    async fn read(app: &App, visitor: &Visitor, link: &Link) -> Result<Self, Problem> {
        let links = std::slice::from_ref(link);
        let state = app.links.effective_states(links).await?;
        let state = state.first().copied().unwrap_or(EffectiveState::Active);
        let clicks = link_view::clicks(app, visitor.principal.user, links).await;
        let clicks = clicks.and_then(|clicks| clicks.first().copied());
        let short_url = app.public.short_url(link.id.key.as_str());
        Ok(Self {
            key: link.id.key.to_string(),
            short: without_scheme(&short_url).to_owned(),
            short_url,
            title: link.title.as_deref().unwrap_or_default().to_owned(),
            target: link.target.as_str().to_owned(),
            tags: link.tags.iter().map(LinkTag::new).collect(),
            state: StateWords::new(link, state),
            is_deleted: link.state.is_deleted(),
            is_disabled: state == EffectiveState::Disabled,
            audience: audience(link.visibility),
            made: link.created_at.into(),
            clicks: clicks.map(grouped),
            max_clicks: link.max_clicks.map(grouped),
            is_others: link.owner != visitor.principal.user,
        })
    }
}

fn is_admin(visitor: &Visitor) -> bool {
    visitor.user.role == Role::Admin
}
