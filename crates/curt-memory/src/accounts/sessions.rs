use std::collections::HashMap;

use async_trait::async_trait;
use curt_core::ports::{Session, Sessions};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::MemoryAccounts;
use crate::locked;

#[derive(Debug, Default)]
pub(super) struct SessionTable {
    by_id: HashMap<Box<str>, Session>,
}

impl SessionTable {
    /// Removes up to `limit` sessions of those that are to `go`, and says how many.
    pub(super) fn remove(&mut self, limit: usize, go: impl Fn(&Session) -> bool) -> u64 {
        let mut gone = 0;
        self.by_id.retain(|_, session| {
            let stays = gone == limit || !go(session);
            gone += usize::from(!stays);
            stays
        });
        gone as u64
    }
}

#[async_trait]
impl Sessions for MemoryAccounts {
    async fn add_session(&self, session: &Session) -> PortResult<bool> {
        let sessions = &mut locked(&self.tables).sessions.by_id;
        let taken = sessions.contains_key(&session.id);
        if !taken {
            sessions.insert(session.id.clone(), session.clone());
        }
        Ok(!taken)
    }

    async fn session(&self, id: &str) -> PortResult<Option<Session>> {
        Ok(locked(&self.tables).sessions.by_id.get(id).cloned())
    }

    async fn sessions(&self, user: OwnerId, now: UnixMillis) -> PortResult<Vec<Session>> {
        let sessions = &locked(&self.tables).sessions.by_id;
        let wanted = |session: &&Session| session.user == user && session.expires_at > now;
        let mut found: Vec<Session> = sessions.values().filter(wanted).cloned().collect();
        found.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        Ok(found)
    }

    async fn end_session(&self, user: OwnerId, id: &str) -> PortResult<bool> {
        let sessions = &mut locked(&self.tables).sessions.by_id;
        let is_theirs = sessions.get(id).is_some_and(|session| session.user == user);
        Ok(is_theirs && sessions.remove(id).is_some())
    }

    async fn end_sessions(&self, user: OwnerId, but: Option<&str>) -> PortResult<u64> {
        let sessions = &mut locked(&self.tables).sessions;
        let goes = |session: &Session| session.user == user && but != Some(&*session.id);
        Ok(sessions.remove(usize::MAX, goes))
    }

    async fn touch_session(
        &self,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<()> {
        let sessions = &mut locked(&self.tables).sessions.by_id;
        let found = sessions.get_mut(id);
        if let Some(session) = found.filter(|session| session.used_at <= used_at) {
            session.used_at = used_at;
            session.expires_at = expires_at;
        }
        Ok(())
    }

    async fn purge_sessions(&self, now: UnixMillis, limit: usize) -> PortResult<u64> {
        let sessions = &mut locked(&self.tables).sessions;
        Ok(sessions.remove(limit, |session| session.expires_at <= now))
    }
}
