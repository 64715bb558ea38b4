use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use async_trait::async_trait;
use curt_core::account::{Role, User};
use curt_core::ports::{QuotaRule, UserChange, UserRemoval, Users};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::MemoryAccounts;
use crate::locked;

#[derive(Debug, Default)]
pub(super) struct UserTable {
    by_id: BTreeMap<OwnerId, User>,
    by_email: HashMap<Box<str>, OwnerId>,
}

impl UserTable {
    fn add(&mut self, user: &User) -> bool {
        let taken = self.by_id.contains_key(&user.id) || self.by_email.contains_key(&user.email);
        if !taken {
            self.by_email.insert(user.email.clone(), user.id);
            self.by_id.insert(user.id, user.clone());
        }
        !taken
    }

    fn update(&mut self, user: &User, seen: UnixMillis) -> UserChange {
        let Some(stored) = self.by_id.get_mut(&user.id) else {
            return UserChange::Absent;
        };
        if stored.updated_at != seen {
            return UserChange::Stale;
        }
        let has_email = self.by_email.get(&user.email);
        if has_email.is_some_and(|other| *other != user.id) {
            return UserChange::EmailTaken;
        }
        self.by_email.remove(&stored.email);
        self.by_email.insert(user.email.clone(), user.id);
        *stored = User {
            created_at: stored.created_at,
            ..user.clone()
        };
        UserChange::Changed
    }

    fn remove(&mut self, id: OwnerId) -> UserRemoval {
        let Some(user) = self.by_id.get(&id) else {
            return UserRemoval::Absent;
        };
        let is_other_admin = |other: &User| {
            other.id != id && other.role == Role::Admin && other.disabled_at.is_none()
        };
        if user.role == Role::Admin && !self.by_id.values().any(is_other_admin) {
            return UserRemoval::LastAdmin;
        }
        self.by_email.remove(&user.email);
        self.by_id.remove(&id);
        UserRemoval::Removed
    }

    pub(super) fn redirection_limits(&self) -> Vec<(OwnerId, QuotaRule)> {
        let limit = |user: &User| Some((user.id, user.allowance.redirections?));
        self.by_id.values().filter_map(limit).collect()
    }
}

#[async_trait]
impl Users for MemoryAccounts {
    async fn add_user(&self, user: &User) -> PortResult<bool> {
        Ok(locked(&self.tables).users.add(user))
    }

    async fn user(&self, id: OwnerId) -> PortResult<Option<User>> {
        Ok(locked(&self.tables).users.by_id.get(&id).cloned())
    }

    async fn user_by_email(&self, email: &str) -> PortResult<Option<User>> {
        let users = &locked(&self.tables).users;
        let id = users.by_email.get(email);
        Ok(id.and_then(|id| users.by_id.get(id)).cloned())
    }

    async fn users(&self, after: Option<OwnerId>, limit: usize) -> PortResult<Vec<User>> {
        let users = &locked(&self.tables).users;
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = users.by_id.range((start, Bound::Unbounded));
        Ok(range.take(limit).map(|(_, user)| user.clone()).collect())
    }

    async fn update_user(&self, user: &User, seen: UnixMillis) -> PortResult<UserChange> {
        Ok(locked(&self.tables).users.update(user, seen))
    }

    async fn remove_user(&self, id: OwnerId) -> PortResult<UserRemoval> {
        let tables = &mut *locked(&self.tables);
        let removal = tables.users.remove(id);
        if removal == UserRemoval::Removed {
            tables
                .sessions
                .remove(usize::MAX, |session| session.user == id);
            tables.permissions.remove_user(id);
        }
        Ok(removal)
    }

    async fn anybody_can_sign_in(&self) -> PortResult<bool> {
        let users = &locked(&self.tables).users;
        let can_sign_in = |user: &User| user.password_hash.is_some();
        Ok(users.by_id.values().any(can_sign_in))
    }

    async fn disabled_users(&self) -> PortResult<Vec<OwnerId>> {
        let users = &locked(&self.tables).users;
        let disabled = users
            .by_id
            .values()
            .filter(|user| user.disabled_at.is_some());
        Ok(disabled.map(|user| user.id).collect())
    }
}
