//! The start page: one form.
//!
//! It acts for whoever is signed in; otherwise it carries the API key itself, so that a page of another site cannot act
//! for somebody who has opened this one, or none, and then the [`Caller`] looks at where the request comes from. A
//! hidden random token makes a form that is sent twice, by a double click or a reload, one link.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use curt_clicks::record::Outcome;
use curt_core::limits::{IDEMPOTENCY_KEY_BYTES_MAX, PASSWORD_BYTES_MAX};
use curt_core::{Link, Visibility};
use curt_links::{Created, IdempotencyKey, LinkDraft, NewLink, NewPassword};
use data_encoding::HEXLOWER;
use http::{HeaderMap, Method, StatusCode};

use super::assets::Assets;
use super::expiry_choice::{Choice, choice, choices, parse_choice};
use super::form::{Form, Message};
use super::visitor::Visitor;
use super::{VERSION, day, page, refused};
use crate::api::{bind_to_client, fingerprint};
use crate::caller::Caller;
use crate::problem::{Problem, ProblemCode};
use crate::redirect::clicks::{Client, RequestedLink};
use crate::state::App;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    assets: &'static Assets,
    version: &'static str,
    host: String,
    user_menu: Option<UserMenu>,
    asks_for_key: bool,
    visibilities: [Choice; 3],
    choices: Vec<Choice>,
    typed: Typed,
    errors: Errors,
    message: Option<Message>,
    made: Option<Made>,
    once: String,
    focus_target: bool,
}

/// Whoever is signed in.
#[derive(Clone)]
struct UserMenu {
    name: String,
    csrf: String,
}

/// What the visitor typed, to be shown again; the link's password is not.
#[derive(Clone, Default)]
struct Typed {
    target: String,
    alias: String,
    expires: String,
    visibility: String,
    password: String,
    api_key: String,
    once: String,
}

#[derive(Default)]
struct Errors {
    target: Option<String>,
    alias: Option<String>,
    expires: Option<String>,
    visibility: Option<String>,
    password: Option<String>,
    api_key: Option<String>,
}

struct Made {
    short_url: String,
    target: String,
    expires: Option<String>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&app, &caller).await?;
    if let Some(clicks) = &app.clicks {
        let asked = RequestedLink {
            key: "",
            generation: 0,
            outcome: Outcome::Base,
            attribution: curt_core::Attribution::default(),
            utm: curt_clicks::record::UtmText::default(),
        };
        let client = Client::of(&method, &headers, caller.address);
        clicks.record(asked, &client, app.clock.now());
    }
    Ok(page(StatusCode::OK, &blank(&app, visitor.as_ref())))
}

pub(super) async fn shorten(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let form = Form::read(&app, request).await?;
    let visitor = Visitor::of(&app, &caller).await?;
    let typed = Typed::of(&form);
    let acts_for_visitor = visitor.as_ref().filter(|_| typed.api_key.is_empty());
    if let Some(visitor) = acts_for_visitor {
        visitor.check(&form)?;
    }
    let blank = blank(&app, visitor.as_ref());
    Ok(match create(&app, &caller, &typed).await {
        Ok(created) => {
            let shown = after_success(&app, blank, &created.link, typed);
            page(StatusCode::CREATED, &shown)
        }
        Err(problem) => after_failure(blank, typed, problem),
    })
}

async fn create(app: &App, caller: &Caller, typed: &Typed) -> Result<Created, Problem> {
    let principal = caller.require_creator(app, Some(&typed.api_key)).await?;
    let visibility = typed.visibility()?;
    let expires_at = parse_choice(&typed.expires, app.clock.now())
        .ok_or_else(|| Problem::invalid_field("expires_at", "value", "Choose one of the list."))?;
    let link = NewLink {
        target: with_scheme(&typed.target),
        alias: (!typed.alias.is_empty()).then(|| typed.alias.clone()),
        expires_at,
        visibility: Some(visibility),
        ..NewLink::default()
    };
    let has_password = visibility == Visibility::Password && !typed.password.is_empty();
    let password = has_password.then(|| NewPassword(typed.password.clone()));
    let once = once(typed)?.map(|once| IdempotencyKey {
        key: bind_to_client(once.key, principal.as_ref(), caller.address),
        ..once
    });
    let creator = caller.link_caller(principal.as_ref());
    let draft = LinkDraft { link, password };
    let (created, _) = app
        .link_operations()
        .create_link(creator, draft, once)
        .await?;
    Ok(created)
}

/// The token alone would refuse a form that was changed after going back; token and content together do not.
fn once(typed: &Typed) -> Result<Option<IdempotencyKey>, Problem> {
    // What is remembered holds a quick hash of the content, by which a password could be guessed.
    if typed.visibility()? == Visibility::Password {
        return Ok(None);
    }
    let sound = (1..=64).contains(&typed.once.len())
        && typed.once.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !sound {
        return Ok(None);
    }
    let content = (
        &typed.target,
        &typed.alias,
        &typed.expires,
        &typed.visibility,
    );
    let fingerprint = fingerprint("POST /", &content)?;
    let key = format!("page-{}-{}", typed.once, HEXLOWER.encode(&fingerprint));
    debug_assert!(key.len() <= IDEMPOTENCY_KEY_BYTES_MAX);
    Ok(Some(IdempotencyKey { key, fingerprint }))
}

impl Typed {
    fn of(form: &Form) -> Self {
        Self {
            target: form.text("target"),
            alias: form.text("alias"),
            expires: form.text("expires"),
            visibility: form.text("visibility"),
            password: form.secret("password").to_owned(),
            api_key: form.text("api_key"),
            once: form.text("once"),
        }
    }

    fn visibility(&self) -> Result<Visibility, Problem> {
        let long = self.password.len() > PASSWORD_BYTES_MAX;
        match self.visibility.as_str() {
            "" | "public" => Ok(Visibility::Public),
            "private" => Ok(Visibility::Private),
            "password" if long => {
                let most = format!("A password has at most {PASSWORD_BYTES_MAX} bytes.");
                Err(Problem::invalid_field("password", "too_long", most))
            }
            "password" => Ok(Visibility::Password),
            _ => Err(Problem::invalid_field(
                "visibility",
                "value",
                "Choose one of the list.",
            )),
        }
    }
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

fn blank(app: &App, visitor: Option<&Visitor>) -> HomePage {
    let base = app.public.base();
    let host = base.split_once("://").map_or(base, |(_, host)| host);
    HomePage {
        assets: Assets::addresses(),
        version: VERSION,
        host: host.to_owned(),
        user_menu: visitor.map(|visitor| UserMenu {
            name: visitor.name(),
            csrf: visitor.csrf.clone(),
        }),
        asks_for_key: visitor.is_none() && !app.settings.api.anonymous_create,
        visibilities: [
            choice("public", "Everybody"),
            choice("private", "Only you, and whom you permit"),
            choice("password", "Whoever knows the password"),
        ],
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
fn after_success(app: &App, blank: HomePage, link: &Link, typed: Typed) -> HomePage {
    HomePage {
        made: Some(Made {
            short_url: app.public.short_url(link.id.key.as_str()),
            target: link.target.as_str().to_owned(),
            expires: link.expires_at.map(day),
        }),
        typed: Typed {
            api_key: typed.api_key,
            expires: typed.expires,
            visibility: typed.visibility,
            ..Typed::default()
        },
        focus_target: false,
        ..blank
    }
}

fn after_failure(blank: HomePage, typed: Typed, problem: Problem) -> Response {
    let errors = Errors::of(&problem);
    let body = problem.body();
    let message = errors.is_empty().then(|| Message {
        title: body.title,
        detail: body.detail.into_owned(),
    });
    let shown = HomePage {
        once: typed.once.clone(),
        typed,
        errors,
        message,
        focus_target: false,
        ..blank
    };
    refused(problem, |status| page(status, &shown))
}

impl Errors {
    fn of(problem: &Problem) -> Self {
        let mut errors = Self::default();
        match problem.code() {
            ProblemCode::CredentialsMissing => {
                errors.api_key = Some("An API key is needed, or sign in.".to_owned());
            }
            ProblemCode::CredentialsInvalid => {
                let error = "This key is unknown, revoked or expired. Was it copied whole?";
                errors.api_key = Some(error.to_owned());
            }
            ProblemCode::AliasTaken => {
                errors.alias = Some("This alias is taken. Choose another one.".to_owned());
            }
            _ => {
                for error in problem.errors() {
                    let message = Some(error.message.to_string());
                    match error.field.as_ref() {
                        "target" => errors.target = message,
                        "alias" => errors.alias = message,
                        "visibility" => errors.visibility = message,
                        "password" => errors.password = message,
                        _ => errors.expires = message,
                    }
                }
            }
        }
        errors
    }

    fn is_empty(&self) -> bool {
        [
            &self.target,
            &self.alias,
            &self.expires,
            &self.visibility,
            &self.password,
            &self.api_key,
        ]
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
}
