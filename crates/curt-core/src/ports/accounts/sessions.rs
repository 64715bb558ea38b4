use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::owner::OwnerId;

/// Browsers that are signed in.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Adds a session if its id is free, and says whether it did.
    async fn add_session(&self, session: &Session) -> PortResult<bool>;

    /// Expired ones too. Absent: `None`.
    async fn session(&self, id: &str) -> PortResult<Option<Session>>;

    /// The sessions of a user that have not expired at `now`, newest first.
    async fn sessions(&self, user: OwnerId, now: UnixMillis) -> PortResult<Vec<Session>>;

    /// Ends a session of that user and says whether this call did. Somebody else's counts as absent.
    async fn end_session(&self, user: OwnerId, id: &str) -> PortResult<bool>;

    /// Ends all sessions of a user but the one named, expired ones too, and returns how many.
    async fn end_sessions(&self, user: OwnerId, but: Option<&str>) -> PortResult<u64>;

    /// Notes that the session was used, and moves its expiry. Absent, or used later already: no change.
    async fn touch_session(
        &self,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<()>;

    /// Removes up to `limit` sessions that have expired at `now`, and returns how many.
    async fn purge_sessions(&self, now: UnixMillis, limit: usize) -> PortResult<u64>;
}

/// What is kept of a session: enough to recognise its cookie, not enough to make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The public part of the cookie; lists show it.
    pub id: Box<str>,
    /// SHA-256 of the secret part.
    pub secret_hash: [u8; 32],
    pub user: OwnerId,
    pub created_at: UnixMillis,
    pub used_at: UnixMillis,
    pub expires_at: UnixMillis,
    /// The browser as it called itself, shortened, so that people recognise their own.
    pub agent: Box<str>,
}
