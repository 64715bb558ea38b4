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
use curt_links::{Created, Expiry, IdempotencyKey, LinkDraft, NewLink, NewPassword};
use data_encoding::HEXLOWER;
use http::{HeaderMap, Method, StatusCode};

use super::expiry_choice::{Choice, choice, choices, parse_choice};
use super::form::{Form, Mistakes};
use super::frame::Frame;
use super::overview::Overview;
use super::visitor::Visitor;
use super::{PageTime, page, refused};
use crate::api::{bind_to_client, fingerprint};
use crate::caller::Caller;
use crate::problem::{InvalidField, Problem, ProblemCode, field_name};
use crate::redirect::clicks::{Client, RequestedLink};
use crate::state::App;

/// As the form shows them.
const FIELDS: [&str; 6] = [
    "target",
    "alias",
    "expires",
    "visibility",
    "password",
    "api_key",
];

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    host: String,
    asks_for_key: bool,
    visibilities: [Choice; 3],
    choices: Vec<Choice>,
    typed: Typed,
    mistakes: Mistakes,
    made: Option<Made>,
    once: String,
    focus_target: bool,
    /// For whoever is signed in, below the form.
    overview: Option<Overview>,
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

struct Made {
    /// The link's own page, for whoever may see it.
    page: Option<String>,
    short_url: String,
    target: String,
    expires: Option<PageTime>,
    /// Who may follow it, unless that is everybody.
    audience: &'static str,
}

/// A form that was refused: the status is the problem's, and the page may say more than it.
struct RefusedForm {
    problem: Problem,
    mistakes: Mistakes,
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
    let shown = first_screen(&app, visitor.as_ref()).await;
    Ok(page(StatusCode::OK, &shown))
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
    let created = create(&app, &caller, &typed).await;
    let blank = first_screen(&app, visitor.as_ref()).await;
    Ok(match created {
        Ok(created) => {
            let shown = after_success(&app, blank, &created.link, typed);
            page(StatusCode::CREATED, &shown)
        }
        Err(refusal) => after_failure(blank, typed, refusal),
    })
}

async fn create(app: &App, caller: &Caller, typed: &Typed) -> Result<Created, RefusedForm> {
    let mut invalid = Vec::new();
    let visibility = keep(&mut invalid, typed.visibility());
    let expires_at = parse_choice(&typed.expires, app.clock.now());
    let unknown = || InvalidField::new("expires", "value", "Choose one of the list.");
    let expires_at = keep(&mut invalid, expires_at.ok_or_else(unknown));
    let principal = caller.require_creator(app, Some(&typed.api_key)).await;
    let (Ok(principal), Some(visibility), Some(expires_at)) = (&principal, visibility, expires_at)
    else {
        return Err(typed.refuse_all(app, principal.err(), invalid));
    };
    let link = typed.new_link(visibility, expires_at);
    let password = (visibility == Visibility::Password && !typed.password.is_empty())
        .then(|| NewPassword(typed.password.clone()));
    let once = typed.idempotency_key(visibility)?;
    let once = once.map(|once| IdempotencyKey {
        key: bind_to_client(once.key, principal.as_ref(), caller.address),
        ..once
    });
    let creator = caller.link_caller(principal.as_ref());
    let draft = LinkDraft { link, password };
    let creating = app.link_operations().create_link(creator, draft, once);
    let (created, _) = creating.await.map_err(Problem::from)?;
    Ok(created)
}

/// Returns what was read, or notes what is wrong with it.
fn keep<T>(invalid: &mut Vec<InvalidField>, read: Result<T, InvalidField>) -> Option<T> {
    read.map_err(|error| invalid.push(error)).ok()
}

impl From<Problem> for RefusedForm {
    fn from(problem: Problem) -> Self {
        let mistakes = mistakes_of(&problem);
        Self { problem, mistakes }
    }
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

    /// Who may follow the link. Whoever typed a password wants it to count, whatever the list still says; only where
    /// something else was chosen in the list it is not clear what was meant.
    fn visibility(&self) -> Result<Visibility, InvalidField> {
        let has_password = !self.password.is_empty();
        let wrong_password = |code, message| Err(InvalidField::new("password", code, message));
        match self.visibility.as_str() {
            _ if self.password.len() > PASSWORD_BYTES_MAX => wrong_password(
                "too_long",
                format!("A password has at most {PASSWORD_BYTES_MAX} bytes."),
            ),
            "" | "public" | "password" if has_password => Ok(Visibility::Password),
            "private" if has_password => wrong_password(
                "password_unused",
                format!(
                    "A private link has no password: choose “{PASSWORD_LABEL}”, or leave this empty."
                ),
            ),
            "" | "public" => Ok(Visibility::Public),
            "private" => Ok(Visibility::Private),
            "password" => wrong_password(
                "password_missing",
                "Type the password that the link is to have.".to_owned(),
            ),
            _ => Err(InvalidField::new(
                "visibility",
                "value",
                "Choose one of the list.",
            )),
        }
    }

    fn new_link(&self, visibility: Visibility, expires_at: Expiry) -> NewLink {
        NewLink {
            target: self.target.clone(),
            alias: self.alias().map(str::to_owned),
            expires_at,
            visibility: Some(visibility),
            ..NewLink::default()
        }
    }

    fn alias(&self) -> Option<&str> {
        Some(self.alias.as_str()).filter(|alias| !alias.is_empty())
    }

    /// Everything that is wrong with the form, whether or not the visitor may make links: nobody should hear of the next
    /// mistake only after mending the last.
    fn refuse_all(
        &self,
        app: &App,
        refusal: Option<Problem>,
        mut invalid: Vec<InvalidField>,
    ) -> RefusedForm {
        let is_about_key = |problem: &Problem| {
            let code = problem.code();
            matches!(
                code,
                ProblemCode::CredentialsMissing | ProblemCode::CredentialsInvalid
            )
        };
        match refusal {
            Some(problem) if !is_about_key(&problem) => problem.into(),
            refusal => {
                let typed = app.links.check_typed(&self.target, self.alias());
                invalid.extend(typed.into_iter().map(|error| {
                    InvalidField::new(field_name(error.field), error.code, error.message)
                }));
                let of_fields = Problem::invalid(invalid);
                let mut mistakes = match of_fields.errors() {
                    [] => Mistakes::default(),
                    _ => mistakes_of(&of_fields),
                };
                if let Some(problem) = &refusal {
                    mistakes.add("api_key", key_mistake(problem.code()));
                }
                RefusedForm {
                    problem: refusal.unwrap_or(of_fields),
                    mistakes,
                }
            }
        }
    }

    /// The token alone would refuse a form that was changed after going back; token and content together do not.
    fn idempotency_key(&self, visibility: Visibility) -> Result<Option<IdempotencyKey>, Problem> {
        // What is remembered holds a quick hash of the content, by which a password could be guessed.
        if visibility == Visibility::Password {
            return Ok(None);
        }
        let sound = (1..=64).contains(&self.once.len())
            && self.once.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !sound {
            return Ok(None);
        }
        let content = (&self.target, &self.alias, &self.expires, &self.visibility);
        let fingerprint = fingerprint("POST /", &content)?;
        let key = format!("page-{}-{}", self.once, HEXLOWER.encode(&fingerprint));
        debug_assert!(key.len() <= IDEMPOTENCY_KEY_BYTES_MAX);
        Ok(Some(IdempotencyKey { key, fingerprint }))
    }
}

/// What is chosen for a link with a password.
const PASSWORD_LABEL: &str = "Whoever knows the password";

fn blank(app: &App, visitor: Option<&Visitor>) -> HomePage {
    let base = app.public.base();
    let host = base.split_once("://").map_or(base, |(_, host)| host);
    HomePage {
        frame: Frame::new(app, visitor).at("/"),
        host: host.to_owned(),
        asks_for_key: visitor.is_none() && !app.settings.api.anonymous_create,
        visibilities: [
            choice("public", "Everybody"),
            choice("private", "Only you, and whom you permit"),
            choice("password", PASSWORD_LABEL),
        ],
        choices: choices(app),
        typed: Typed::default(),
        mistakes: Mistakes::default(),
        made: None,
        once: format!("{:032x}", rand::random::<u128>()),
        focus_target: true,
        overview: None,
    }
}

/// The page as it is before anything is typed, with what whoever is signed in has.
/// The form is worth showing without it, and a link that was made has to be told of.
async fn first_screen(app: &App, visitor: Option<&Visitor>) -> HomePage {
    let overview = match visitor {
        Some(visitor) => Overview::load(app, &visitor.principal).await.ok().flatten(),
        None => None,
    };
    HomePage {
        overview,
        ..blank(app, visitor)
    }
}

/// Only what is no secret stays in the form: whoever shortens one address often has another.
fn after_success(app: &App, blank: HomePage, link: &Link, typed: Typed) -> HomePage {
    HomePage {
        made: Some(Made {
            page: (blank.frame.user.is_some() && typed.api_key.is_empty())
                .then(|| format!("/links/{}", link.id.key)),
            short_url: app.public.short_url(link.id.key.as_str()),
            target: link.target.as_str().to_owned(),
            expires: link.expires_at.map(PageTime::from),
            audience: match link.visibility {
                Visibility::Public => "",
                Visibility::Private => "Only you may follow it, and whom you permit.",
                Visibility::Password => "It asks for the password that you typed.",
            },
        }),
        typed: Typed {
            expires: typed.expires,
            visibility: typed.visibility,
            ..Typed::default()
        },
        focus_target: false,
        ..blank
    }
}

fn after_failure(blank: HomePage, typed: Typed, refusal: RefusedForm) -> Response {
    let shown = HomePage {
        once: typed.once.clone(),
        typed,
        mistakes: refusal.mistakes.in_order(&FIELDS),
        focus_target: false,
        ..blank
    };
    refused(refusal.problem, |status| page(status, &shown))
}

/// What belongs to a field goes beside it, by the form's own names.
fn mistakes_of(problem: &Problem) -> Mistakes {
    let code = problem.code();
    let known = match code {
        ProblemCode::CredentialsMissing | ProblemCode::CredentialsInvalid => {
            Some(("api_key", key_mistake(code).into()))
        }
        ProblemCode::AliasTaken => Some(("alias", problem.body().detail)),
        _ => None,
    };
    let Some((field, why)) = known else {
        let renamed = problem.clone();
        return Mistakes::of_problem(&renamed.rename_fields(|field| match field {
            "target" | "alias" | "expires" | "visibility" | "password" => None,
            // Nothing else in the form can be wrong.
            _ => Some("expires"),
        }));
    };
    let mut mistakes = Mistakes::default();
    mistakes.add(field, why);
    mistakes
}

fn key_mistake(code: ProblemCode) -> &'static str {
    match code {
        ProblemCode::CredentialsMissing => "An API key is needed.",
        _ => "This key is unknown, revoked or expired. Was it copied whole?",
    }
}
