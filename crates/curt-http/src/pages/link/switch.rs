//! Deleting a link, bringing it back, and for administrators switching it off and on.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use curt_core::{Link, LinkState, Scope};
use curt_links::LinksChange;

use super::{PostedForm, posted_about};
use crate::api::bulk_change::change_links;
use crate::caller::Caller;
use crate::pages::confirm::Question;
use crate::pages::form::{Form, see_other};
use crate::pages::links;
use crate::pages::turned::Turned;
use crate::pages::visitor::Visitor;
use crate::problem::Problem;
use crate::state::App;

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let posted = posted_about(&app, &caller, key, request, Scope::Manage).await?;
    let PostedForm {
        visitor,
        link,
        form,
    } = posted;
    if !Question::is_answered(&form) {
        return Ok(ask(&app, &visitor, &link));
    }
    change(&app, &caller, &visitor, &link, LinksChange::Delete).await?;
    Ok(see_other(&format!("{}?done=delete&n=1", links::PATH)))
}

fn ask(app: &App, visitor: &Visitor, link: &Link) -> Response {
    let key = link.id.key.as_str();
    let grace = app.links.settings().grace;
    let consequence = match grace.is_zero() {
        true => "It stops working at once, for good.".to_owned(),
        false => {
            let days = grace.as_secs() / 86_400;
            format!("It stops working at once. You can restore it for {days} days.")
        }
    };
    let question = Question {
        question: format!("Delete the link “{key}”?"),
        consequence,
        yes: "Delete",
        action: &format!("{}/{key}/delete", links::PATH),
        field: "key",
        value: key,
        back: &format!("{}/{key}/edit", links::PATH),
    };
    question.ask_at(links::PATH, app, visitor)
}

pub(super) async fn restore(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let posted = posted_about(&app, &caller, key, request, Scope::Manage).await?;
    let PostedForm { visitor, link, .. } = posted;
    change(&app, &caller, &visitor, &link, LinksChange::Restore).await?;
    Ok(back(&link, "restored"))
}

pub(super) async fn switch(
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let posted = posted_about(&app, &caller, key, request, Scope::Admin).await?;
    let PostedForm {
        visitor,
        link,
        form,
    } = posted;
    let (state, done) = wanted(&form);
    change(&app, &caller, &visitor, &link, LinksChange::Switch(state)).await?;
    Ok(back(&link, done))
}

fn wanted(form: &Form) -> (LinkState, &'static str) {
    match form.text("to").as_str() {
        "on" => (LinkState::Active, "enabled"),
        _ => (LinkState::Disabled, "disabled"),
    }
}

/// One change, which stands in the audit log as one of many would.
async fn change(
    app: &Arc<App>,
    caller: &Caller,
    visitor: &Visitor,
    link: &Link,
    change: LinksChange,
) -> Result<(), Problem> {
    let keys = vec![link.id.key.to_string()];
    let outcomes = change_links(app, caller, &visitor.principal, keys, change).await?;
    for outcome in outcomes {
        outcome?;
    }
    Ok(())
}

fn back(link: &Link, done: &str) -> Response {
    see_other(&format!("{}/{}?done={done}", links::PATH, link.id.key))
}
