use std::fmt;

use curt_core::limits::{AGENT_BYTES_MAX, SESSIONS_PER_USER_MAX};
use curt_core::names::{audit, event};
use curt_core::ports::Session;
use curt_core::{OwnerId, PortResult, UnixMillis, User};

use super::{UserOperations, UserRef, browsers, find};
use crate::audit::Origin;
use crate::constant_time::ConstantTime;
use crate::error::{AccountError, TRIES_MAX, exhausted};
use crate::token;

/// What somebody shows to come in.
#[derive(Clone, Copy)]
pub struct SignIn<'a> {
    pub email: &'a str,
    pub password: &'a str,
    /// The browser as it calls itself.
    pub agent: &'a str,
    /// The token that the browser held so far: its session ends, so that nobody who planted it stays in.
    pub replaces: Option<&'a str>,
}

/// Without the password and the token.
impl fmt::Debug for SignIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn")
            .field("email", &self.email)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// Somebody who came in. The only moment at which the token is known.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub token: String,
    pub session: Session,
    pub user: User,
    /// What the browser keeps, to be known to the account when it comes again.
    pub browser_token: Option<String>,
}

/// Without the token.
impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedIn")
            .field("session", &self.session.id)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl UserOperations {
    /// Begins a session. An unknown email, a wrong password and a disabled user are one answer, after the same work
    /// and [in the same time](ConstantTime).
    pub async fn sign_in(
        &self,
        shown: SignIn<'_>,
        origin: Origin,
    ) -> Result<SignedIn, AccountError> {
        let begun = ConstantTime::begin();
        match self.verify_and_begin_session(shown, origin).await {
            Ok(signed_in) => {
                if let Some(old) = shown.replaces {
                    self.end_replaced_session(old).await?;
                }
                let origin = origin.by(signed_in.user.id);
                self.audit
                    .record(origin, audit::SIGNED_IN, &signed_in.user.email)
                    .await;
                Ok(signed_in)
            }
            Err(AccountError::WrongCredentials) => {
                self.audit
                    .record(origin, audit::SIGN_IN_FAILED, shown.email)
                    .await;
                begun.wait_for_step_end().await;
                Err(AccountError::WrongCredentials)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn verify_and_begin_session(
        &self,
        shown: SignIn<'_>,
        origin: Origin,
    ) -> Result<SignedIn, AccountError> {
        for _ in 0..TRIES_MAX {
            let found = find(&*self.accounts, UserRef::Email(shown.email)).await?;
            let hash = found
                .as_ref()
                .and_then(|user| user.password_hash.as_deref());
            let matches = self
                .passwords
                .verify(origin.into(), shown.password, hash)
                .await?;
            let user = found
                .filter(|user| matches && user.disabled_at.is_none())
                .ok_or(AccountError::WrongCredentials)?;
            let (token, session) = self.begin_session(user.id, shown.agent).await?;
            // The password was true a moment ago. If it was changed since, the sessions were ended before this one
            // began, and this one must not outlive them.
            let still = self.accounts.user(user.id).await?;
            let unchanged = |still: &User| {
                still.password_hash == user.password_hash && still.disabled_at.is_none()
            };
            if let Some(still) = still.filter(unchanged) {
                let user = self.rehash_if_outdated(still, shown.password, origin).await;
                return Ok(SignedIn {
                    token,
                    session,
                    browser_token: browsers::token_for(&user),
                    user,
                });
            }
            self.accounts.end_session(user.id, &session.id).await?;
        }
        Err(exhausted("sign in"))
    }

    async fn begin_session(
        &self,
        user: OwnerId,
        agent: &str,
    ) -> Result<(String, Session), AccountError> {
        let now = self.clock.now();
        for _ in 0..TRIES_MAX {
            let token = token::SESSION.generate();
            let session = Session {
                id: token.id().into(),
                secret_hash: token.secret_hash(),
                user,
                created_at: now,
                used_at: now,
                expires_at: self.session_expiry(now, now),
                agent: shorten(agent),
            };
            if self.accounts.add_session(&session).await? {
                self.end_oldest_sessions(user, now).await?;
                return Ok((token.reveal().to_owned(), session));
            }
        }
        Err(exhausted("add a session"))
    }

    async fn end_oldest_sessions(&self, user: OwnerId, now: UnixMillis) -> PortResult<()> {
        let sessions = self.accounts.sessions(user, now).await?;
        for session in sessions.iter().skip(SESSIONS_PER_USER_MAX) {
            self.accounts.end_session(user, &session.id).await?;
        }
        if sessions.len() > SESSIONS_PER_USER_MAX {
            self.credentials.invalidate_all();
        }
        Ok(())
    }

    /// The user with a hash at today's cost. Failing at it keeps nobody out: the next sign-in tries again.
    async fn rehash_if_outdated(&self, user: User, password: &str, origin: Origin) -> User {
        let hash = user.password_hash.as_deref();
        if !hash.is_some_and(|hash| self.passwords.is_outdated(hash)) {
            return user;
        }
        match self.replace_hash(&user, password, origin).await {
            Ok(rehash_if_outdated) => rehash_if_outdated,
            Err(failure) => {
                tracing::warn!(event = event::STORE_FAILED, %failure, user = %user.id, "password not rehashed");
                user
            }
        }
    }
}

/// One line that a list can show.
fn shorten(agent: &str) -> Box<str> {
    let line: String = agent.chars().filter(|c| !c.is_control()).collect();
    line[..line.floor_char_boundary(AGENT_BYTES_MAX)].into()
}
