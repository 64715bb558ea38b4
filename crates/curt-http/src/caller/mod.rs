//! Who is asking, and from where.
//!
//! Credentials are an API key, as `Authorization: Bearer KEY`, as `X-Api-Key: KEY`, or in the two operations of the
//! original API as `api_dev_key`; or the cookie of a session. A header wins over a parameter, and a key over a cookie.
//! A browser sends cookies without being asked, so that a cookie counts for a change only if the request comes from
//! one of our own pages ([`site`]).

pub(crate) mod address;
pub(crate) mod cookie;
pub(crate) mod site;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use curt_accounts::{Guess, Origin, Principal};
use curt_core::{OwnerId, Scope};
use curt_links::LinkCaller;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method};

use self::site::SendingSite;
use crate::body_budget::BodySource;
use crate::problem::{Problem, ProblemCode};
use crate::rate_limit;
use crate::state::App;

const X_API_KEY: &str = "x-api-key";

/// What a request tells about whoever sent it. Nothing is checked yet: every handler says what it needs.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: IpAddr,
    header: ShownCredential,
    cookie: Option<String>,
    /// The token by which the browser may be known to an account.
    browser: Option<String>,
    site: SendingSite,
    changes: bool,
    known_user: KnownUser,
}

/// Tells the outermost layer who a request acts for, once that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownUser(Arc<OnceLock<OwnerId>>);

impl KnownUser {
    fn tell(&self, user: OwnerId) {
        if self.0.set(user).is_ok() {
            tracing::Span::current().record("user", user.0);
        }
    }

    pub(crate) fn get(&self) -> Option<OwnerId> {
        self.0.get().copied()
    }
}

#[derive(Clone)]
enum ShownCredential {
    Nothing,
    Token(String),
    Malformed(&'static str),
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self::of(app, parts))
    }
}

impl Caller {
    pub(crate) fn of(app: &App, parts: &Parts) -> Self {
        let base = app.public.base();
        Self {
            address: address::of(parts, &app.settings.api.trusted_proxies),
            header: credential_in_headers(&parts.headers),
            cookie: cookie::session(&parts.headers, base).map(str::to_owned),
            browser: cookie::browser(&parts.headers, base).map(str::to_owned),
            site: SendingSite::from_headers(&parts.headers, base),
            changes: !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS),
            known_user: parts.extensions.get().cloned().unwrap_or_default(),
        }
    }

    /// Whom the request acts for, if it shows anything. What is shown must be good.
    pub(crate) async fn principal(
        &self,
        app: &App,
        parameter: Option<&str>,
    ) -> Result<Option<Principal>, Problem> {
        let token = match &self.header {
            ShownCredential::Malformed(why) => {
                return Err(Problem::new(ProblemCode::CredentialsInvalid).detail(*why));
            }
            ShownCredential::Token(token) => Some(token.as_str()),
            ShownCredential::Nothing => parameter.filter(|token| !token.is_empty()),
        };
        if let Some(token) = token {
            let principal = app.accounts.api_keys.authenticate(token).await?;
            let principal =
                principal.ok_or_else(|| Problem::new(ProblemCode::CredentialsInvalid))?;
            self.known_user.tell(principal.user);
            return Ok(Some(principal));
        }
        self.session(app).await
    }

    /// Whom the cookie stands for. One that has ended is like none: the browser cannot know.
    pub(crate) async fn session(&self, app: &App) -> Result<Option<Principal>, Problem> {
        let Some(token) = &self.cookie else {
            return Ok(None);
        };
        let principal = app.accounts.users.authenticate_session(token).await?;
        if principal.is_some() && self.changes && self.site != SendingSite::Own {
            return Err(Problem::new(ProblemCode::CrossSite));
        }
        if let Some(principal) = &principal {
            self.known_user.tell(principal.user);
        }
        Ok(principal)
    }

    /// Whoever asks must show that they may do this.
    pub(crate) async fn require_scope(
        &self,
        app: &App,
        scope: Scope,
    ) -> Result<Principal, Problem> {
        self.require_scope_with(app, None, scope).await
    }

    pub(crate) async fn require_scope_with(
        &self,
        app: &App,
        parameter: Option<&str>,
        scope: Scope,
    ) -> Result<Principal, Problem> {
        let principal = self.principal(app, parameter).await?;
        let principal = principal.ok_or_else(|| Problem::new(ProblemCode::CredentialsMissing))?;
        check_scope(&principal, scope)?;
        Ok(principal)
    }

    /// Returns who creates links, or `None` where that may be done without credentials, and then not by a page of another
    /// site.
    pub(crate) async fn require_creator(
        &self,
        app: &App,
        parameter: Option<&str>,
    ) -> Result<Option<Principal>, Problem> {
        if let Some(principal) = self.principal(app, parameter).await? {
            check_scope(&principal, Scope::Create)?;
            return Ok(Some(principal));
        }
        if !app.settings.api.anonymous_create {
            return Err(Problem::new(ProblemCode::CredentialsMissing));
        }
        if self.site == SendingSite::Other {
            return Err(Problem::new(ProblemCode::CrossSite));
        }
        Ok(None)
    }

    /// Whom a request body counts for.
    pub(crate) fn body_source(&self, principal: Option<&Principal>) -> BodySource {
        BodySource::new(self.address, principal)
    }

    /// Whether the request shows an API key in a header, which counts whatever else it shows.
    pub(crate) fn shows_api_key(&self) -> bool {
        matches!(self.header, ShownCredential::Token(_))
    }

    /// Refuses a caller who could not create a single link now, so that the body need not be read.
    pub(crate) async fn refuse_exhausted(
        &self,
        app: &App,
        principal: Option<&Principal>,
    ) -> Result<(), Problem> {
        let limits = &app.accounts.limits;
        let exhausted = limits.creations_exhausted(principal, self.address).await?;
        rate_limit::granted(exhausted).map(drop)
    }

    /// Returns who asks, for an operation on links.
    pub(crate) fn link_caller<'a>(&self, principal: Option<&'a Principal>) -> LinkCaller<'a> {
        LinkCaller {
            principal,
            address: self.address,
        }
    }

    /// Counts a try to sign in before any work is done for it, and takes it back unless it was a wrong one.
    pub(crate) async fn guess_sign_in<T>(
        &self,
        app: &App,
        email: &str,
        sign_in: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let (browser, session) = (self.browser.as_deref(), self.session_token());
        let users = &app.accounts.users;
        let browser = users.known_browser(email, browser, session).await?;
        let limits = &app.accounts.limits;
        let guess = limits.sign_ins(self.address, email, browser.as_deref());
        run_guess(app, guess.await?, sign_in).await
    }

    /// As [`guess_sign_in`](Self::guess_sign_in), for somebody who is signed in and shows their password once more.
    pub(crate) async fn guess_password<T>(
        &self,
        app: &App,
        user: OwnerId,
        check: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let guess = app.accounts.limits.password_checks(user).await?;
        run_guess(app, guess, check).await
    }

    /// Checks somebody's own password before they change what they sign in with.
    pub(crate) async fn check_password(
        &self,
        app: &App,
        user: OwnerId,
        password: &str,
    ) -> Result<(), Problem> {
        let origin = self.origin().by(user);
        let check = async {
            let checked = app.accounts.users.check_password(user, password, origin);
            Ok(checked.await.map(drop)?)
        };
        self.guess_password(app, user, check).await
    }

    /// Counts a new account, before any work is done for it.
    pub(crate) async fn may_sign_up(&self, app: &App) -> Result<(), Problem> {
        let decision = app.accounts.limits.sign_ups(self.address).await?;
        rate_limit::granted(decision).map(drop)
    }

    /// For the audit log.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            actor: None,
            address: Some(self.address),
        }
    }

    pub(crate) fn session_token(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// For forms that act without a cookie, such as the one to sign in.
    pub(crate) fn refuse_other_sites(&self) -> Result<(), Problem> {
        match self.site {
            SendingSite::Other => Err(Problem::new(ProblemCode::CrossSite)),
            SendingSite::Own | SendingSite::Unknown => Ok(()),
        }
    }
}

/// Does what was counted as a guess, if it is granted, and gives the guess back unless it was wrong.
async fn run_guess<T>(
    app: &App,
    guess: Guess,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    rate_limit::granted(guess.decision)?;
    let outcome = work.await;
    let wrong = |problem: &Problem| problem.code() == ProblemCode::WrongCredentials;
    if !outcome.as_ref().is_err_and(wrong) {
        app.accounts.limits.give_back(guess, outcome.is_ok()).await;
    }
    outcome
}

pub(crate) fn check_scope(principal: &Principal, scope: Scope) -> Result<(), Problem> {
    if principal.may(scope) {
        Ok(())
    } else {
        Err(scope_missing(scope))
    }
}

pub(crate) fn scope_missing(scope: Scope) -> Problem {
    let what = format!("This needs the scope \"{}\".", scope.name());
    Problem::new(ProblemCode::ScopeMissing).detail(what)
}

fn credential_in_headers(headers: &HeaderMap) -> ShownCredential {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let parts = value.to_str().ok();
        return match parts.and_then(|value| value.trim().split_once(' ')) {
            None => ShownCredential::Malformed("The Authorization header must be \"Bearer KEY\"."),
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                ShownCredential::Token(token.trim().to_owned())
            }
            Some(_) => {
                ShownCredential::Malformed("The scheme of the Authorization header must be Bearer.")
            }
        };
    }
    match headers.get(X_API_KEY).map(|value| value.to_str()) {
        None => ShownCredential::Nothing,
        Some(Ok(token)) => ShownCredential::Token(token.trim().to_owned()),
        Some(Err(_)) => ShownCredential::Malformed("The key in X-Api-Key is not ASCII."),
    }
}
