use std::time::Duration;

use curt_core::limits::PURGE_BATCH_MAX;
use curt_core::names::{audit, event};
use curt_core::ports::Session;
use curt_core::{OwnerId, PortResult, Scopes, UnixMillis, User};

use super::UserOperations;
use crate::audit::Origin;
use crate::credentials::{self, Authentication};
use crate::error::AccountError;
use crate::principal::{Credential, Principal};
use crate::token;

/// How long a session may be used before that is written down.
const TOUCH_EVERY: Duration = Duration::from_secs(60);

impl UserOperations {
    /// Whom a session's token stands for, as [`ApiKeys::authenticate`](crate::ApiKeys::authenticate) answers for keys.
    pub async fn authenticate_session(&self, token: &str) -> PortResult<Option<Principal>> {
        let now = self.clock.now();
        let look = |id, secret| self.look_up_session(id, secret, now);
        credentials::authenticate_token(&self.credentials, token::SESSION, token, now, look).await
    }

    async fn look_up_session(
        &self,
        id: &str,
        secret: &str,
        now: UnixMillis,
    ) -> PortResult<Authentication> {
        let session = self.accounts.session(id).await?;
        // Nobody is looked up for an unknown session, so that it costs about what a wrong one costs.
        let user = session
            .as_ref()
            .map_or(OwnerId::ANONYMOUS, |session| session.user);
        let user = self.accounts.user(user).await?;
        let verdict = self.check_session(session.as_ref(), user, &token::hash(secret), now);
        if let (Some(session), Some(_)) = (&session, &verdict.principal) {
            self.touch_session_if_due(session, now).await;
        }
        Ok(verdict)
    }

    fn check_session(
        &self,
        session: Option<&Session>,
        user: Option<User>,
        shown: &[u8; 32],
        now: UnixMillis,
    ) -> Authentication {
        let matches = token::matches(session.map(|session| &session.secret_hash), shown);
        let (Some(session), Some(user)) = (session, user) else {
            return Authentication::REFUSED;
        };
        // Settings may have become stricter since the session was written.
        let ends_at = session
            .expires_at
            .min(self.session_expiry(session.created_at, session.used_at));
        if !matches || ends_at <= now || user.disabled_at.is_some() {
            return Authentication::REFUSED;
        }
        let id = session.id.clone();
        Authentication {
            principal: Some(Principal::new(
                &user,
                Scopes::ALL,
                Credential::Session { id },
            )),
            ends_at: Some(ends_at),
        }
    }

    pub(super) fn session_expiry(&self, created_at: UnixMillis, used_at: UnixMillis) -> UnixMillis {
        let idle = used_at.plus(self.settings.session_idle);
        idle.min(created_at.plus(self.settings.session_max))
    }

    /// Failing at it keeps nobody out: the next request tries again.
    async fn touch_session_if_due(&self, session: &Session, now: UnixMillis) {
        if now.since(session.used_at) < TOUCH_EVERY {
            return;
        }
        let ends_at = self.session_expiry(session.created_at, now);
        let touched = self.accounts.touch_session(&session.id, now, ends_at).await;
        if let Err(failure) = touched {
            tracing::warn!(event = event::STORE_FAILED, %failure, "session use not recorded");
        }
    }

    /// The sessions of a user that have not ended, newest first.
    pub async fn sessions(&self, user: OwnerId) -> PortResult<Vec<Session>> {
        let now = self.clock.now();
        let mut sessions = self.accounts.sessions(user, now).await?;
        sessions.retain(|session| self.session_expiry(session.created_at, session.used_at) > now);
        Ok(sessions)
    }

    /// Ends the session of that token; an unknown one is none.
    pub async fn sign_out(&self, token: &str, origin: Origin) -> PortResult<()> {
        if let Some(user) = self.end_session_of_token(token).await? {
            self.audit
                .record(origin.by(user), audit::SIGNED_OUT, &user.to_string())
                .await;
        }
        Ok(())
    }

    /// Ends the session that a sign-in replaces.
    pub(super) async fn end_replaced_session(&self, token: &str) -> PortResult<()> {
        self.end_session_of_token(token).await.map(drop)
    }

    async fn end_session_of_token(&self, token: &str) -> PortResult<Option<OwnerId>> {
        let Some((id, secret)) = token::SESSION.split(token) else {
            return Ok(None);
        };
        let session = self.accounts.session(id).await?;
        let hash = session.as_ref().map(|session| &session.secret_hash);
        let is_true = token::matches(hash, &token::hash(secret));
        let Some(session) = session.filter(|_| is_true) else {
            return Ok(None);
        };
        let ended = self.accounts.end_session(session.user, id).await?;
        self.credentials.invalidate(&credentials::cache_key(token));
        Ok(ended.then_some(session.user))
    }

    /// Ends one session of a user. Somebody else's is [`AccountError::NotFound`].
    pub async fn end_session(
        &self,
        user: OwnerId,
        id: &str,
        origin: Origin,
    ) -> Result<(), AccountError> {
        let ended = self.accounts.end_session(user, id).await?;
        self.credentials.invalidate_all();
        if !ended {
            return Err(AccountError::NotFound);
        }
        self.audit.record(origin, audit::SESSION_ENDED, id).await;
        Ok(())
    }

    /// Ends all sessions of a user, and returns how many.
    pub async fn end_sessions(&self, user: &User, origin: Origin) -> PortResult<u64> {
        let ended = self.accounts.end_sessions(user.id, None).await?;
        self.credentials.invalidate_all();
        if ended > 0 {
            self.audit
                .record(origin, audit::SESSION_ENDED, &user.email)
                .await;
        }
        Ok(ended)
    }

    /// Removes sessions that have expired at `now`, a batch at a time, and returns how many.
    pub async fn purge_sessions(&self, now: UnixMillis) -> PortResult<u64> {
        let mut purged = 0;
        loop {
            let batch = self.accounts.purge_sessions(now, PURGE_BATCH_MAX).await?;
            purged += batch;
            if batch < PURGE_BATCH_MAX as u64 {
                return Ok(purged);
            }
        }
    }
}
