use std::collections::HashMap;

use async_trait::async_trait;
use curt_core::ports::{LinkChange, Permission, PermissionId, Permissions};
use curt_core::{LinkId, OwnerId, PortResult, UnixMillis};

use super::MemoryAccounts;
use crate::locked;

#[derive(Debug, Default)]
pub(super) struct PermissionTable {
    /// Oldest first.
    by_link: HashMap<LinkId, Vec<Permission>>,
    last_id: u64,
}

impl PermissionTable {
    /// Removes the permissions of a user.
    pub(super) fn remove_user(&mut self, user: OwnerId) {
        self.by_link.retain(|_, of_link| {
            of_link.retain(|permission| permission.user != user);
            !of_link.is_empty()
        });
    }

    fn of_link(&self, link: &LinkId, generation: u32) -> impl Iterator<Item = &Permission> {
        let all = self.by_link.get(link).into_iter().flatten();
        all.filter(move |permission| permission.generation == generation)
    }

    fn find(&self, user: OwnerId, link: &LinkId, generation: u32) -> Option<&Permission> {
        let mut all = self.of_link(link, generation);
        all.find(|permission| permission.user == user)
    }

    fn grant(
        &mut self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
        now: UnixMillis,
    ) -> Permission {
        if let Some(earlier) = self.find(user, link, generation) {
            return earlier.clone();
        }
        self.last_id += 1;
        let permission = Permission {
            id: PermissionId(self.last_id),
            user,
            link: link.clone(),
            generation,
            granted_at: now,
        };
        let of_link = self.by_link.entry(link.clone()).or_default();
        of_link.push(permission.clone());
        permission
    }

    fn revoke(&mut self, id: PermissionId, link: &LinkId) -> bool {
        let Some(of_link) = self.by_link.get_mut(link) else {
            return false;
        };
        let before = of_link.len();
        of_link.retain(|permission| permission.id != id);
        let revoked = of_link.len() < before;
        if of_link.is_empty() {
            self.by_link.remove(link);
        }
        revoked
    }

    fn revoke_through(&mut self, link: &LinkId, generation: u32) {
        let Some(of_link) = self.by_link.get_mut(link) else {
            return;
        };
        of_link.retain(|permission| permission.generation > generation);
        if of_link.is_empty() {
            self.by_link.remove(link);
        }
    }
}

#[async_trait]
impl Permissions for MemoryAccounts {
    async fn grant(
        &self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
        now: UnixMillis,
    ) -> PortResult<Permission> {
        let permissions = &mut locked(&self.tables).permissions;
        Ok(permissions.grant(user, link, generation, now))
    }

    async fn revoke(&self, id: PermissionId, link: &LinkId) -> PortResult<bool> {
        Ok(locked(&self.tables).permissions.revoke(id, link))
    }

    async fn permissions(
        &self,
        link: &LinkId,
        generation: u32,
        limit: usize,
    ) -> PortResult<Vec<Permission>> {
        let permissions = &locked(&self.tables).permissions;
        let of_link = permissions.of_link(link, generation);
        Ok(of_link.take(limit).cloned().collect())
    }

    async fn may_follow(&self, user: OwnerId, link: &LinkId, generation: u32) -> PortResult<bool> {
        let permissions = &locked(&self.tables).permissions;
        Ok(permissions.find(user, link, generation).is_some())
    }

    async fn revoke_released(&self, released: &[LinkChange]) -> PortResult<()> {
        let permissions = &mut locked(&self.tables).permissions;
        for LinkChange { id, revision } in released {
            permissions.revoke_through(id, revision.generation);
        }
        Ok(())
    }
}
