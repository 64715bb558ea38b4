use std::time::Duration;

use async_trait::async_trait;
use curt_core::account::{Role, User};
use curt_core::ports::{QuotaRule, UserChange, UserRemoval, Users};
use curt_core::{Clock, OwnerId, PortResult, SystemClock, UnixMillis};

use super::{WideAccounts, user_at, user_place, users_after};
use crate::wide_column::{Decided, Doubt, Mark, ReadMode, pause, together};

/// How long whoever claims an email may take to store it with the user: longer than any call.
const CLAIM_LASTS: Duration = Duration::from_secs(60);
const USERS_AT_ONCE: usize = 200;

const ALL: &str = "users";
pub(super) const ADMINS: &str = "users/admins";
const DISABLED: &str = "users/disabled";
const LIMITED: &str = "users/limited";
const WITH_PASSWORD: &str = "users/password";

/// Users as an engine keeps them, and who has which email.
#[async_trait]
pub trait UserRows: Send + Sync {
    async fn get_user(
        &self,
        op: &'static str,
        id: OwnerId,
        mode: ReadMode,
    ) -> PortResult<Option<StoredUser>>;

    /// Stores a user, if there is no row with the id; or, over a removed one, if that is what the row says.
    async fn insert_user(
        &self,
        op: &'static str,
        user: &User,
        mark: Mark,
        is_over_removed: bool,
    ) -> PortResult<Decided>;

    /// Replaces a user who was last changed at `seen`.
    async fn update_user(
        &self,
        op: &'static str,
        user: &User,
        seen: UnixMillis,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Keeps nothing of the user but that there was one.
    async fn remove_user(&self, op: &'static str, id: OwnerId, mark: Mark) -> PortResult<Decided>;

    /// Who has the email, or is about to, and since when.
    async fn get_email(
        &self,
        op: &'static str,
        email: &str,
        mode: ReadMode,
    ) -> PortResult<Option<(OwnerId, UnixMillis)>>;

    /// Claims an email that nobody has.
    async fn claim_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
        at: UnixMillis,
    ) -> PortResult<Decided>;

    /// Takes an email over from the claim `seen`.
    async fn take_over_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
        at: UnixMillis,
        seen: (OwnerId, UnixMillis),
    ) -> PortResult<Decided>;

    /// Gives an email up, if it is the user's.
    async fn free_email(&self, op: &'static str, email: &str, user: OwnerId)
    -> PortResult<Decided>;

    /// The administrator who is being removed, as it was decided.
    async fn get_removal(&self, op: &'static str) -> PortResult<Option<PendingRemoval>>;

    /// Stores who is being removed, under the next version, if the version is `seen`; `None`: if there is none yet.
    async fn set_removal(
        &self,
        op: &'static str,
        seen: Option<i64>,
        pending: Option<OwnerId>,
    ) -> PortResult<Decided>;
}

/// A user as a row says.
#[derive(Clone, Debug)]
pub struct StoredUser {
    /// `None`: was removed.
    pub user: Option<User>,
    /// The call that made the latest change.
    pub changed_by: Option<Mark>,
}

/// Removals of administrators are decided one after the other.
#[derive(Clone, Copy, Debug)]
pub struct PendingRemoval {
    pub version: i64,
    pub pending: Option<OwnerId>,
}

/// The lists that a user is in.
fn lists_of(user: &User) -> Vec<&'static str> {
    let all = [
        (ALL, true),
        (ADMINS, is_active_admin(user)),
        (DISABLED, user.disabled_at.is_some()),
        (LIMITED, user.allowance.redirections.is_some()),
        (WITH_PASSWORD, user.password_hash.is_some()),
    ];
    let own = all.into_iter().filter(|(_, is_in)| *is_in);
    own.map(|(list, _)| list).collect()
}

fn is_active_admin(user: &User) -> bool {
    user.role == Role::Admin && user.disabled_at.is_none()
}

#[async_trait]
impl Users for WideAccounts {
    async fn add_user(&self, user: &User) -> PortResult<bool> {
        const OP: &str = "add a user";
        self.deadlines.change(OP, self.try_add_user(OP, user)).await
    }

    async fn user(&self, id: OwnerId) -> PortResult<Option<User>> {
        const OP: &str = "look up a user";
        self.deadlines
            .look_up(OP, self.find_user(OP, id, ReadMode::Acknowledged))
            .await
    }

    async fn user_by_email(&self, email: &str) -> PortResult<Option<User>> {
        const OP: &str = "look up an email";
        let found = async {
            let Some((id, _)) = self
                .rows
                .get_email(OP, email, ReadMode::Acknowledged)
                .await?
            else {
                return Ok(None);
            };
            let user = self.find_user(OP, id, ReadMode::Acknowledged).await?;
            Ok(user.filter(|user| &*user.email == email))
        };
        self.deadlines.look_up(OP, found).await
    }

    async fn users(&self, after: Option<OwnerId>, limit: usize) -> PortResult<Vec<User>> {
        const OP: &str = "list users";
        self.deadlines
            .list(OP, self.users_in(OP, ALL, after, limit))
            .await
    }

    async fn update_user(&self, user: &User, seen: UnixMillis) -> PortResult<UserChange> {
        const OP: &str = "update a user";
        self.deadlines
            .change(OP, self.try_update_user(OP, user, seen))
            .await
    }

    async fn remove_user(&self, id: OwnerId) -> PortResult<UserRemoval> {
        const OP: &str = "remove a user";
        self.deadlines
            .change_much(OP, self.try_remove_user(OP, id))
            .await
    }

    async fn anybody_can_sign_in(&self) -> PortResult<bool> {
        const OP: &str = "look for a password";
        let found = self.users_in(OP, WITH_PASSWORD, None, 1);
        Ok(!self.deadlines.list(OP, found).await?.is_empty())
    }

    async fn disabled_users(&self) -> PortResult<Vec<OwnerId>> {
        const OP: &str = "list disabled users";
        let found = self.users_in(OP, DISABLED, None, usize::MAX);
        let users = self.deadlines.list(OP, found).await?;
        Ok(users.iter().map(|user| user.id).collect())
    }
}

impl WideAccounts {
    pub(super) async fn redirection_limits_of_users(
        &self,
        op: &'static str,
    ) -> PortResult<Vec<(OwnerId, QuotaRule)>> {
        let users = self.users_in(op, LIMITED, None, usize::MAX).await?;
        let limit = |user: &User| Some((user.id, user.allowance.redirections?));
        Ok(users.iter().filter_map(limit).collect())
    }

    pub(super) async fn find_user(
        &self,
        op: &'static str,
        id: OwnerId,
        mode: ReadMode,
    ) -> PortResult<Option<User>> {
        let row = self.rows.get_user(op, id, mode).await?;
        Ok(row.and_then(|row| row.user))
    }

    /// The users of a list who belong there, by id.
    pub(super) async fn users_in(
        &self,
        op: &'static str,
        list: &'static str,
        after: Option<OwnerId>,
        limit: usize,
    ) -> PortResult<Vec<User>> {
        let mut span = users_after(list, after);
        let mut users = Vec::new();
        while users.len() < limit {
            let wanted = (limit - users.len()).min(USERS_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let ids = entries
                .entries
                .iter()
                .map(|entry| user_at(&entry.place.position));
            let found = together(ids.map(|id| async move {
                match id {
                    Some(id) => self.find_user(op, id, ReadMode::Acknowledged).await,
                    None => Ok(None),
                }
            }));
            let found = found.await?;
            let mut stale = Vec::new();
            for (entry, user) in entries.entries.into_iter().zip(found) {
                span.follow(&entry.place);
                match user {
                    Some(user) if lists_of(&user).contains(&list) => users.push(user),
                    _ => stale.push(entry),
                }
            }
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                break;
            }
        }
        Ok(users)
    }

    async fn try_add_user(&self, op: &'static str, user: &User) -> PortResult<bool> {
        let _turn = self.user_turn.lock().await;
        let row = self.rows.get_user(op, user.id, ReadMode::Decided);
        let mut row = row.await?;
        if row.as_ref().is_some_and(|row| row.user.is_some()) {
            return Ok(false);
        }
        if !self.claim_email(op, &user.email, user.id).await? {
            return Ok(false);
        }
        let places = lists_of(user).into_iter();
        let places = places.map(|list| user_place(list, user.id));
        self.lists.add(op, places).await?;
        let mark = Mark::random();
        let mut doubt = Doubt::default();
        loop {
            let is_over_removed = row.is_some();
            let decided = self.rows.insert_user(op, user, mark, is_over_removed);
            match doubt.keep(decided.await)? {
                Decided::Applied => return Ok(true),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            let stored = self.rows.get_user(op, user.id, ReadMode::Decided);
            row = doubt.keep(stored.await)?;
            if let Some(row) = row.as_ref().filter(|row| row.user.is_some()) {
                let is_own = row.changed_by == Some(mark);
                if !is_own {
                    self.free_email(op, &user.email, user.id).await?;
                }
                return Ok(is_own);
            }
            pause().await;
        }
    }

    async fn try_update_user(
        &self,
        op: &'static str,
        user: &User,
        seen: UnixMillis,
    ) -> PortResult<UserChange> {
        let _turn = self.user_turn.lock().await;
        let mark = Mark::random();
        let mut doubt = Doubt::default();
        loop {
            let row = self.rows.get_user(op, user.id, ReadMode::Decided);
            let row = doubt.keep(row.await)?;
            let is_own = row.as_ref().is_some_and(|row| row.changed_by == Some(mark));
            let Some(before) = row.and_then(|row| row.user) else {
                return doubt.or(UserChange::Absent);
            };
            if is_own {
                return Ok(UserChange::Changed);
            }
            if before.updated_at != seen {
                return doubt.or(UserChange::Stale);
            }
            let moves = before.email != user.email;
            if moves && !self.claim_email(op, &user.email, user.id).await? {
                return doubt.or(UserChange::EmailTaken);
            }
            let after = User {
                created_at: before.created_at,
                ..user.clone()
            };
            let places = lists_of(&after).into_iter();
            let places = places.map(|list| user_place(list, user.id));
            doubt.keep(self.lists.add(op, places).await)?;
            let decided = self.rows.update_user(op, &after, seen, mark).await;
            let decided = doubt.keep(decided)?;
            // Of the two emails, the one that the user does not have now is free.
            let freed = match &decided {
                Decided::Applied => Some(&before.email),
                Decided::Refused => Some(&user.email),
                Decided::Unknown(_) => None,
            };
            if let Some(freed) = freed.filter(|_| moves) {
                self.free_email(op, freed, user.id).await?;
            }
            match decided {
                Decided::Applied => return Ok(UserChange::Changed),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            pause().await;
        }
    }

    /// Makes the email the user's, if nobody has it. It counts once the user's own row has it: what a crash leaves is taken
    /// over.
    async fn claim_email(&self, op: &'static str, email: &str, user: OwnerId) -> PortResult<bool> {
        loop {
            let now = SystemClock.now();
            let claimed = self.rows.claim_email(op, email, user, now).await?;
            if let Decided::Applied = claimed {
                return Ok(true);
            }
            let claim = self.rows.get_email(op, email, ReadMode::Decided).await?;
            let (owner, claimed_at) = match claim {
                None => continue,
                Some((owner, _)) if owner == user => return Ok(true),
                Some(claim) => claim,
            };
            let owner_row = self.find_user(op, owner, ReadMode::Decided).await?;
            let has_it = owner_row.is_some_and(|owner| &*owner.email == email);
            if has_it || now.since(claimed_at) < CLAIM_LASTS {
                return Ok(false);
            }
            let seen = (owner, claimed_at);
            let taken = self.rows.take_over_email(op, email, user, now, seen);
            if let Decided::Applied = taken.await? {
                return Ok(true);
            }
        }
    }

    /// Gives up the user's claim, unless the user has the email. What fails here is found out and taken over later.
    pub(super) async fn free_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
    ) -> PortResult<()> {
        let now = self.find_user(op, user, ReadMode::Decided).await?;
        if now.is_none_or(|now| &*now.email != email) {
            self.rows.free_email(op, email, user).await?;
        }
        Ok(())
    }
}
