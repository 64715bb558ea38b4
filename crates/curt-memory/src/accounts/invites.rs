use std::collections::HashMap;

use async_trait::async_trait;
use curt_core::ports::{Invite, Invites, OpenInvites};
use curt_core::{PortResult, UnixMillis};

use super::MemoryAccounts;
use crate::locked;

#[derive(Debug, Default)]
pub(super) struct InviteTable {
    by_hash: HashMap<[u8; 32], Invite>,
}

impl InviteTable {
    fn valid(&self, secret_hash: &[u8; 32], now: UnixMillis) -> Option<&Invite> {
        let found = self.by_hash.get(secret_hash);
        found.filter(|invite| invite.expires_at > now)
    }
}

#[async_trait]
impl Invites for MemoryAccounts {
    async fn add_invite(&self, invite: &Invite) -> PortResult<bool> {
        let invites = &mut locked(&self.tables).invites.by_hash;
        let taken = invites.contains_key(&invite.secret_hash);
        if !taken {
            invites.insert(invite.secret_hash, invite.clone());
        }
        Ok(!taken)
    }

    async fn take_invite(
        &self,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>> {
        let invites = &mut locked(&self.tables).invites;
        if invites.valid(secret_hash, now).is_none() {
            return Ok(None);
        }
        Ok(invites.by_hash.remove(secret_hash))
    }

    async fn invite(&self, secret_hash: &[u8; 32], now: UnixMillis) -> PortResult<Option<Invite>> {
        let invites = &locked(&self.tables).invites;
        Ok(invites.valid(secret_hash, now).cloned())
    }

    async fn invites(&self, now: UnixMillis, limit: usize) -> PortResult<OpenInvites> {
        let invites = &locked(&self.tables).invites;
        let all = invites.by_hash.values();
        let open = all.filter(|invite| invite.expires_at > now);
        Ok(OpenInvites::of(open.cloned().collect(), limit))
    }
}
