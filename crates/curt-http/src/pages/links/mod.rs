//! `/links`: the links of whoever is signed in, and what can be done with many of them at once.

mod bulk;
mod filter;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use curt_core::{EffectiveState, Role, Scope};
use http::{StatusCode, Uri};

use self::bulk::{BulkOutcome, bulk};
use self::filter::ListFilter;
use super::expiry_choice::{Choice, choice, choices};
use super::form::Form;
use super::frame::Frame;
use super::link_rows::{LinkRow, rows};
use super::turned::{Turned, signed_in};
use super::visitor::Visitor;
use super::{page, refused};
use crate::api::{links_file, listed};
use crate::caller::{Caller, check_scope};
use crate::problem::Problem;
use crate::state::App;

pub(super) const PATH: &str = "/links";

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(PATH, get(show))
        .route("/links/export", get(export))
        .route("/links/bulk", post(bulk))
}

#[derive(Template)]
#[template(path = "links.html")]
struct LinksPage {
    frame: Frame,
    csrf: String,
    is_admin: bool,
    filter: ListFilter,
    states: Vec<Choice>,
    orders: Vec<Choice>,
    expiries: Vec<Choice>,
    rows: Vec<LinkRow>,
    /// The address of the next page.
    next: Option<String>,
    /// Why there is no list.
    refusal: Option<String>,
    outcome: BulkOutcome,
}

async fn show(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Turned> {
    let visitor = signed_in(&app, &caller, &uri).await?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let (filter, outcome) = (ListFilter::of(&query), BulkOutcome::done(&query));
    Ok(listed_page(&app, &visitor, filter, outcome).await?)
}

async fn export(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Turned> {
    let visitor = signed_in(&app, &caller, &uri).await?;
    check_scope(&visitor.principal, Scope::Read)?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    let asked = ListFilter::of(&query).file_request()?;
    Ok(links_file::download(app, &visitor.principal, asked).await?)
}

/// The page, also where the filter makes no sense: then with what is wrong in place of links.
async fn listed_page(
    app: &App,
    visitor: &Visitor,
    filter: ListFilter,
    outcome: BulkOutcome,
) -> Result<Response, Problem> {
    check_scope(&visitor.principal, Scope::Read)?;
    let blank = |filter: ListFilter, outcome| LinksPage {
        frame: Frame::new(app, Some(visitor)).at(PATH),
        csrf: visitor.csrf.clone(),
        is_admin: visitor.user.role == Role::Admin,
        filter,
        states: state_choices(),
        orders: order_choices(app),
        expiries: choices(app),
        rows: Vec::new(),
        next: None,
        refusal: None,
        outcome,
    };
    let listed = match filter.request() {
        Ok(asked) => listed::list(app, &visitor.principal, asked).await,
        Err(problem) => Err(problem),
    };
    match listed {
        Ok(found) => {
            let rows = rows(app, &found.links, found.clicks.as_deref()).await?;
            let next = found.next.map(|cursor| filter.address_at(&cursor));
            let shown = LinksPage {
                rows,
                next,
                ..blank(filter, outcome)
            };
            Ok(page(StatusCode::OK, &shown))
        }
        Err(problem) if !problem.errors().is_empty() => {
            let messages = problem.errors().iter().map(|error| error.message.as_ref());
            let messages: Vec<&str> = messages.collect();
            let shown = LinksPage {
                refusal: Some(messages.join(" ")),
                ..blank(filter, outcome)
            };
            Ok(refused(problem, |status| page(status, &shown)))
        }
        Err(problem) => Err(problem),
    }
}

fn state_choices() -> Vec<Choice> {
    let words = |state| match state {
        EffectiveState::Active => "Active",
        EffectiveState::Scheduled => "Not yet active",
        EffectiveState::Exhausted => "Used up",
        EffectiveState::Expired => "Expired",
        EffectiveState::Disabled => "Switched off",
        EffectiveState::Deleted => "Deleted",
    };
    let states = EffectiveState::ALL.into_iter();
    [choice("", "All but deleted")]
        .into_iter()
        .chain(states.map(|state| choice(state.name(), words(state))))
        .collect()
}

fn order_choices(app: &App) -> Vec<Choice> {
    let mut orders = vec![
        choice("", "Newest first"),
        choice("oldest", "Oldest first"),
        choice("key", "By key, A to Z"),
        choice("-key", "By key, Z to A"),
    ];
    if app.reports.is_some() {
        orders.push(choice("clicks", "Most clicks first"));
    }
    orders
}
