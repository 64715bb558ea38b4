//! What the account page shows.

use std::sync::Arc;

use askama::Template;
use curt_accounts::IssuedKey;
use curt_clicks::classify::{ClickRules, UNKNOWN};
use curt_core::ports::{ApiKey, Session};
use curt_core::{Role, Scope, Scopes};

use crate::pages::PageTime;
use crate::pages::form::{Form, Mistakes};
use crate::pages::frame::Frame;
use crate::pages::visitor::Visitor;
use crate::problem::Problem;
use crate::state::App;

const AGENT_CHARS_MAX: usize = 60;

/// As the forms show them.
const FIELDS: [&str; 11] = [
    "first_name",
    "middle_name",
    "last_name",
    "email",
    "current_password",
    "old_password",
    "new_password",
    "new_password_again",
    "key_name",
    "scopes",
    "expires_at",
];

#[derive(Template)]
#[template(path = "account.html")]
pub(super) struct AccountPage {
    frame: Frame,
    csrf: String,
    is_admin: bool,
    profile: Profile,
    sessions: Vec<SessionRow>,
    keys: Vec<KeyRow>,
    scopes: Vec<ScopeChoice>,
    outcome: Outcome,
}

/// What the form that was just sent came to.
#[derive(Default)]
pub(super) struct Outcome {
    said: Option<&'static str>,
    issued: Option<Issued>,
    mistakes: Mistakes,
    /// Of a form about the person that was refused.
    typed: Option<Profile>,
    key_name: String,
}

struct Issued {
    name: String,
    token: String,
}

#[derive(Clone)]
struct Profile {
    first_name: String,
    middle_name: String,
    last_name: String,
    email: String,
}

struct SessionRow {
    id: String,
    /// As it can be read: `Firefox on Windows`.
    browser: String,
    /// As it calls itself.
    agent: String,
    begun: PageTime,
    used: PageTime,
    is_this: bool,
}

struct KeyRow {
    prefix: String,
    /// The prefix of the key that made it.
    parent: Option<String>,
    name: String,
    scopes: String,
    made: PageTime,
    ends: Option<PageTime>,
    used: Option<PageTime>,
    /// Replaced already, and on its way out.
    is_retired: bool,
}

struct ScopeChoice {
    name: &'static str,
    about: &'static str,
    is_usual: bool,
}

impl Outcome {
    /// Only words of ours: the address of a page must not put others into it.
    pub(super) fn done(what: &str) -> Self {
        let said = match what {
            "welcome" => Some("Your account is ready."),
            "profile" => Some("Your names and email are saved."),
            "password" => Some("Your password is changed. All other browsers are signed out."),
            "session" => Some("That browser is signed out."),
            "revoked" => Some("The key is revoked."),
            _ => None,
        };
        Self {
            said,
            ..Self::default()
        }
    }

    pub(super) fn failed(problem: &Problem, form: &Form) -> Self {
        let is_about_profile = form.all("first_name").next().is_some();
        let typed = is_about_profile.then(|| Profile {
            first_name: form.text("first_name"),
            middle_name: form.text("middle_name"),
            last_name: form.text("last_name"),
            email: form.text("email"),
        });
        Self {
            mistakes: Mistakes::of_problem(problem).in_order(&FIELDS),
            typed,
            key_name: form.text("key_name"),
            ..Self::default()
        }
    }

    pub(super) fn issued(issued: &IssuedKey) -> Self {
        Self {
            issued: Some(Issued {
                name: issued.key.name.to_string(),
                token: issued.token.clone(),
            }),
            ..Self::default()
        }
    }
}

impl AccountPage {
    pub(super) async fn load(
        app: &App,
        visitor: &Visitor,
        mut outcome: Outcome,
    ) -> Result<Self, Problem> {
        let id = visitor.principal.user;
        let now = app.clock.now();
        let this_one = visitor.principal.session();
        let sessions = app.accounts.users.sessions(id).await?;
        let api_keys = Arc::clone(&app.accounts.api_keys);
        let reading = async move { api_keys.list(Some(id)).await };
        let keys = app.scans.read(id, reading).await??;
        let profile = outcome.typed.take();
        let rules = app.click_rules();
        Ok(Self {
            frame: Frame::new(app, Some(visitor)).at("/account"),
            csrf: visitor.csrf.clone(),
            is_admin: visitor.user.role == Role::Admin,
            profile: profile.unwrap_or_else(|| Profile::of(visitor)),
            sessions: sessions
                .iter()
                .map(|session| SessionRow::of(&rules, session, this_one))
                .collect(),
            keys: keys
                .iter()
                .filter(|key| key.is_in_force(now))
                .map(KeyRow::of)
                .collect(),
            scopes: scopes(visitor),
            outcome,
        })
    }
}

impl Profile {
    fn of(visitor: &Visitor) -> Self {
        let user = &visitor.user;
        Self {
            first_name: user.first_name.to_string(),
            middle_name: user.middle_name.as_deref().unwrap_or_default().to_owned(),
            last_name: user.last_name.to_string(),
            email: user.email.to_string(),
        }
    }
}

impl SessionRow {
    fn of(rules: &ClickRules, session: &Session, this_one: Option<&str>) -> Self {
        Self {
            id: session.id.to_string(),
            browser: readable_browser(rules, &session.agent),
            agent: session.agent.to_string(),
            begun: session.created_at.into(),
            used: session.used_at.into(),
            is_this: this_one == Some(&*session.id),
        }
    }
}

impl KeyRow {
    fn of(key: &ApiKey) -> Self {
        let ends = key.ends_at();
        Self {
            prefix: key.prefix.to_string(),
            parent: key.parent.as_deref().map(str::to_owned),
            name: key.name.to_string(),
            scopes: names(key.scopes),
            made: key.created_at.into(),
            ends: ends.map(PageTime::from),
            used: key.last_used_at.map(PageTime::from),
            is_retired: key.revoked_at.is_some(),
        }
    }
}

/// What a user agent says, in words. One that says nothing known is shown by its first words, so that sessions can be told
/// apart.
pub(super) fn readable_browser(rules: &ClickRules, agent: &str) -> String {
    let read = rules.read(agent.as_bytes());
    match (&*read.browser, &*read.system) {
        (UNKNOWN, UNKNOWN) if agent.trim().is_empty() => "Unknown browser".to_owned(),
        (UNKNOWN, UNKNOWN) => agent.chars().take(AGENT_CHARS_MAX).collect(),
        (UNKNOWN, system) => format!("Unknown browser on {system}"),
        (browser, UNKNOWN) => browser.to_owned(),
        (browser, system) => format!("{browser} on {system}"),
    }
}

fn names(scopes: Scopes) -> String {
    let names: Vec<_> = scopes.iter().map(Scope::name).collect();
    names.join(", ")
}

/// Nobody can give a key more than they have.
fn scopes(visitor: &Visitor) -> Vec<ScopeChoice> {
    let about = |scope| match scope {
        Scope::Read => "see links and accounts",
        Scope::Create => "make links",
        Scope::Manage => "change and delete links",
        Scope::Admin => "what administrators do",
    };
    Scope::ALL
        .into_iter()
        .filter(|scope| visitor.may(*scope))
        .map(|scope| ScopeChoice {
            name: scope.name(),
            about: about(scope),
            is_usual: matches!(scope, Scope::Read | Scope::Create),
        })
        .collect()
}
