//! The start page: one form.
//!
//! The form carries the API key itself, so a page of another site cannot act for somebody who has visited this one;
//! without a key the [`Caller`] looks at where the request comes from. A hidden random token
//! makes a form that is sent twice, by a double click or a reload, one link.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use curt_core::limits::{HTTP_BODY_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX};
use curt_core::{Link, UnixMillis};
use curt_links::{Created, Expiry, NewLink, OnceKey};
use data_encoding::HEXLOWER;
use http::StatusCode;
use http::request::Parts;
use url::form_urlencoded;

use super::assets::Assets;
use super::{VERSION, page};
use crate::api::{Rfc3339, fingerprint, read_body};
use crate::caller::{self, Caller};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    assets: &'static Assets,
    version: &'static str,
    host: String,
    asks_for_key: bool,
    choices: Vec<Choice>,
    typed: Typed,
    errors: Errors,
    message: Option<Message>,
    made: Option<Made>,
    once: String,
    focus_target: bool,
}

/// What the visitor typed, to be shown again.
#[derive(Clone, Default)]
struct Typed {
    target: String,
    alias: String,
    expires: String,
    api_key: String,
    once: String,
}

struct Choice {
    value: &'static str,
    label: String,
}

#[derive(Default)]
struct Errors {
    target: Option<String>,
    alias: Option<String>,
    expires: Option<String>,
    api_key: Option<String>,
}

struct Message {
    title: &'static str,
    detail: String,
}

struct Made {
    short_url: String,
    target: String,
    expires: Option<String>,
}

pub(super) async fn show(State(app): State<Arc<App>>) -> Response {
    page(StatusCode::OK, &blank(&app))
}

pub(super) async fn shorten(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let patience = app.settings.server.body_timeout;
    let raw = match read_body(body, HTTP_BODY_BYTES_MAX, patience).await {
        Ok(raw) => raw,
        Err(problem) => return problem.into_response(),
    };
    let typed = match read_form(&parts, &raw) {
        Ok(typed) => typed,
        Err(problem) => return problem.into_response(),
    };
    match create(&app, &caller, &typed).await {
        Ok(created) => page(
            StatusCode::CREATED,
            &after_success(&app, &created.link, typed),
        ),
        Err(problem) => after_failure(&app, typed, problem),
    }
}

async fn create(app: &App, caller: &Caller, typed: &Typed) -> Result<Created, Problem> {
    let principal = caller.maker(app, Some(&typed.api_key)).await?;
    let expires_at = choice_of(&typed.expires, app.clock.now())
        .ok_or_else(|| Problem::invalid_field("expires_at", "value", "Choose one of the list."))?;
    let new = NewLink {
        target: with_scheme(&typed.target),
        alias: (!typed.alias.is_empty()).then(|| typed.alias.clone()),
        expires_at,
        ..NewLink::default()
    };
    caller.may_create(app, principal.as_ref(), 1).await?;
    let by = caller::maker(principal.as_ref());
    Ok(app.links.create(by, new, once(typed)?).await?)
}

/// The token alone would refuse a form that was changed after going back; token and content together do not.
fn once(typed: &Typed) -> Result<Option<OnceKey>, Problem> {
    let sound = (1..=64).contains(&typed.once.len())
        && typed.once.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !sound {
        return Ok(None);
    }
    let content = (&typed.target, &typed.alias, &typed.expires);
    let fingerprint = fingerprint("POST /", &content)?;
    let key = format!("page-{}-{}", typed.once, HEXLOWER.encode(&fingerprint));
    debug_assert!(key.len() <= IDEMPOTENCY_KEY_BYTES_MAX);
    Ok(Some(OnceKey { key, fingerprint }))
}

fn read_form(parts: &Parts, raw: &[u8]) -> Result<Typed, Problem> {
    crate::api::form_only(&parts.headers)?;
    let mut typed = Typed::default();
    for (name, value) in form_urlencoded::parse(raw) {
        let value = value.trim().to_owned();
        match name.as_ref() {
            "target" => typed.target = value,
            "alias" => typed.alias = value,
            "expires" => typed.expires = value,
            "api_key" => typed.api_key = value,
            "once" => typed.once = value,
            _ => {}
        }
    }
    Ok(typed)
}

/// People type `example.com/path`. What has no scheme gets the usual one; everything else is left to be judged.
fn with_scheme(typed: &str) -> String {
    let first = typed.split(['/', '?', '#']).next().unwrap_or_default();
    if first.is_empty() || first.contains(':') {
        typed.to_owned()
    } else {
        format!("https://{typed}")
    }
}

fn choice_of(value: &str, now: UnixMillis) -> Option<Expiry> {
    match value {
        "" | "default" => Some(Expiry::Default),
        "never" => Some(Expiry::Never),
        "hour" => Some(Expiry::At(now.plus(HOUR))),
        "day" => Some(Expiry::At(now.plus(DAY))),
        "week" => Some(Expiry::At(now.plus(DAY * 7))),
        "month" => Some(Expiry::At(now.plus(DAY * 30))),
        "year" => Some(Expiry::At(now.plus(DAY * 365))),
        _ => None,
    }
}

fn choices(app: &App) -> Vec<Choice> {
    let choice = |value, label: &str| Choice {
        value,
        label: label.to_owned(),
    };
    let usual = match app.links.settings().default_expiry {
        Some(after) => format!("{} from now", in_words(after)),
        None => "Never".to_owned(),
    };
    let mut choices = vec![
        choice("default", &usual),
        choice("hour", "1 hour from now"),
        choice("day", "1 day from now"),
        choice("week", "1 week from now"),
        choice("month", "30 days from now"),
        choice("year", "1 year from now"),
    ];
    if app.links.settings().default_expiry.is_some() {
        choices.push(choice("never", "Never"));
    }
    choices
}

fn in_words(after: Duration) -> String {
    let days = after.as_secs() / DAY.as_secs();
    match (days, days % 365) {
        (0, _) => format!("{} hours", after.as_secs() / HOUR.as_secs()),
        (365, _) => "1 year".to_owned(),
        (_, 0) => format!("{} years", days / 365),
        _ => format!("{days} days"),
    }
}

fn blank(app: &App) -> HomePage {
    let base = app.public.base();
    let host = base.split_once("://").map_or(base, |(_, host)| host);
    HomePage {
        assets: Assets::addresses(),
        version: VERSION,
        host: host.to_owned(),
        asks_for_key: !app.settings.api.anonymous_create,
        choices: choices(app),
        typed: Typed::default(),
        errors: Errors::default(),
        message: None,
        made: None,
        once: format!("{:032x}", rand::random::<u128>()),
        focus_target: true,
    }
}

/// Only the key stays in the form: whoever shortens one address often has another.
fn after_success(app: &App, link: &Link, typed: Typed) -> HomePage {
    HomePage {
        made: Some(Made {
            short_url: app.public.short_url(link.id.key.as_str()),
            target: link.target.as_str().to_owned(),
            expires: link.expires_at.map(day),
        }),
        typed: Typed {
            api_key: typed.api_key,
            expires: typed.expires,
            ..Typed::default()
        },
        focus_target: false,
        ..blank(app)
    }
}

fn day(at: UnixMillis) -> String {
    let text = Rfc3339(at).to_string();
    let minute = text.get(..16).unwrap_or(&text);
    format!("{} UTC", minute.replace('T', " "))
}

fn after_failure(app: &App, typed: Typed, problem: Problem) -> Response {
    let mut shown = HomePage {
        once: typed.once.clone(),
        typed,
        focus_target: false,
        ..blank(app)
    };
    let body = problem.body();
    match problem.code() {
        ProblemCode::CredentialsMissing => {
            shown.errors.api_key = Some("An API key is needed.".to_owned());
        }
        ProblemCode::CredentialsInvalid => {
            let error = "This key is unknown, revoked or expired. Was it copied whole?";
            shown.errors.api_key = Some(error.to_owned());
        }
        ProblemCode::AliasTaken => {
            shown.errors.alias = Some("This alias is taken. Choose another one.".to_owned());
        }
        _ => {
            for error in problem.errors() {
                let message = Some(error.message.to_string());
                match error.field.as_ref() {
                    "target" => shown.errors.target = message,
                    "alias" => shown.errors.alias = message,
                    _ => shown.errors.expires = message,
                }
            }
        }
    }
    if shown.errors.is_empty() {
        shown.message = Some(Message {
            title: body.title,
            detail: body.detail.into_owned(),
        });
    }
    let status = problem.code().status();
    let answer = problem.into_response();
    let mut page = page(status, &shown);
    super::insert_missing(&mut page, &answer);
    page
}

impl Errors {
    fn is_empty(&self) -> bool {
        [&self.target, &self.alias, &self.expires, &self.api_key]
            .iter()
            .all(|error| error.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_scheme_is_added_and_a_strange_one_is_kept() {
        for (typed, read) in [
            ("example.com", "https://example.com"),
            ("example.com/a:b?c", "https://example.com/a:b?c"),
            ("http://example.com", "http://example.com"),
            ("javascript:alert(1)", "javascript:alert(1)"),
            ("localhost:80/x", "localhost:80/x"),
            ("/path", "/path"),
            ("", ""),
        ] {
            assert_eq!(with_scheme(typed), read);
        }
    }

    #[test]
    fn default_expiries_are_readable() {
        for (days, words) in [(730, "2 years"), (365, "1 year"), (90, "90 days")] {
            assert_eq!(in_words(DAY * days), words);
        }
        assert_eq!(in_words(HOUR * 5), "5 hours");
    }
}
