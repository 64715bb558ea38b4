//! API keys.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_accounts::{IssuedKey, KeyIssuer, NewKey};
use curt_core::{Allowance, Scope, UnixMillis};
use http::StatusCode;

use super::view::{AccountPage, Outcome};
use super::{Turned, done, failed, posted};
use crate::caller::Caller;
use crate::pages::confirm::Question;
use crate::pages::form::Form;
use crate::pages::page;
use crate::pages::visitor::Visitor;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::tasks::run_to_completion;

const DAY: Duration = Duration::from_secs(86_400);
/// How long a key that was replaced goes on, so that its users can be changed over.
const OVERLAP: Duration = DAY;

pub(super) async fn issue(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request).await?;
    let issued = new_key(&app, &caller, &visitor, &form).await;
    Ok(answered(&app, &visitor, &form, issued).await)
}

pub(super) async fn rotate(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request).await?;
    let api_keys = Arc::clone(&app.accounts.api_keys);
    let user = visitor.principal.user;
    let origin = caller.origin().by(user);
    let prefix = form.text("prefix");
    let issuer = KeyIssuer::from(&visitor.principal);
    let rotated = run_to_completion(async move {
        api_keys
            .rotate(&prefix, Some(user), OVERLAP, issuer, origin)
            .await
    });
    let rotated = rotated.await;
    Ok(answered(&app, &visitor, &form, rotated).await)
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Turned> {
    let (visitor, form) = posted(&app, &caller, request).await?;
    let api_keys = Arc::clone(&app.accounts.api_keys);
    let user = visitor.principal.user;
    let origin = caller.origin().by(user);
    let prefix = form.text("prefix");
    if !Question::is_answered(&form) {
        return Ok(ask_before_revoking(&app, &visitor, &form, &prefix).await?);
    }
    let issuer = KeyIssuer::from(&visitor.principal);
    let revoked =
        run_to_completion(
            async move { api_keys.revoke(&prefix, Some(user), issuer, origin).await },
        );
    Ok(match revoked.await {
        Ok(()) => done("revoked"),
        Err(problem) => failed(&app, &visitor, &form, problem).await,
    })
}

async fn ask_before_revoking(
    app: &App,
    visitor: &Visitor,
    form: &Form,
    prefix: &str,
) -> Result<Response, Problem> {
    let user = visitor.principal.user;
    let api_keys = Arc::clone(&app.accounts.api_keys);
    let reading = async move { api_keys.list(Some(user)).await };
    let keys = app.scans.read(user, reading).await??;
    let now = app.clock.now();
    let mut held = keys.iter().filter(|key| key.is_in_force(now));
    let Some(key) = held.clone().find(|key| *key.prefix == *prefix) else {
        let problem = Problem::new(ProblemCode::NotFound);
        return Ok(failed(app, visitor, form, problem).await);
    };
    let has_children = held.any(|key| key.parent.as_deref() == Some(prefix));
    let also = match has_children {
        true => " The keys that were made with it end, too.",
        false => "",
    };
    let question = Question {
        question: format!("Revoke the API key “{}”?", key.name),
        consequence: format!(
            "Programs that use curt_{prefix}_… stop working at once, for good.{also}"
        ),
        yes: "Revoke",
        action: "/account/keys/revoke",
        field: "prefix",
        value: prefix,
        back: "/account#keys",
    };
    Ok(question.ask(app, visitor))
}

async fn new_key(
    app: &App,
    caller: &Caller,
    visitor: &Visitor,
    form: &Form,
) -> Result<IssuedKey, Problem> {
    let now = app.clock.now();
    let expires_at = expiry(form.secret("expires_at"), now)
        .ok_or_else(|| Problem::invalid_field("expires_at", "value", "Choose one of the list."))?;
    let user = visitor.principal.user;
    let new = NewKey {
        user,
        name: form.text("key_name"),
        scopes: form.all("scope").filter_map(Scope::from_name).collect(),
        allowance: Allowance::default(),
        expires_at,
    };
    let api_keys = Arc::clone(&app.accounts.api_keys);
    let issuer = KeyIssuer::from(&visitor.principal);
    let origin = caller.origin().by(user);
    let issued = run_to_completion(async move { api_keys.issue(new, issuer, origin).await }).await;
    issued.map_err(|problem| problem.rename_fields(|field| (field == "name").then_some("key_name")))
}

fn expiry(choice: &str, now: UnixMillis) -> Option<Option<UnixMillis>> {
    let days = match choice {
        "never" => return Some(None),
        "month" => 30,
        "quarter" => 90,
        "year" => 365,
        _ => return None,
    };
    Some(Some(now.plus(DAY * days)))
}

/// The page with the new key's token, which is known at this moment only.
async fn answered(
    app: &App,
    visitor: &Visitor,
    form: &Form,
    issued: Result<IssuedKey, Problem>,
) -> Response {
    let issued = match issued {
        Ok(issued) => issued,
        Err(problem) => return failed(app, visitor, form, problem).await,
    };
    match AccountPage::load(app, visitor, Outcome::issued(&issued)).await {
        Ok(shown) => page(StatusCode::CREATED, &shown),
        Err(problem) => problem.into_response(),
    }
}
