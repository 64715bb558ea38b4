use std::time::Duration;

use async_trait::async_trait;
use curt_core::account::{Role, User};
use curt_core::ports::{QuotaRule, UserChange, UserRemoval, Users};
use curt_core::{Clock, OwnerId, PortResult, SystemClock, UnixMillis};

use super::user_record::{GET, INSERT, REINSERT, UPDATE, UserRow, UserUpdate, UserWrite};
use super::{CassandraAccounts, user_at, user_place, users_after};
use crate::pause::pause;
use crate::statement::{Cql, Decided, Doubt};
use crate::together::together;

const GET_EMAIL: Cql =
    Cql::read("SELECT user, claimed_at FROM KEYSPACE.emails WHERE namespace = ? AND email = ?");
const CLAIM: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.emails (namespace, email, user, claimed_at) VALUES (?, ?, ?, ?) IF NOT EXISTS",
);
const TAKE_OVER: Cql = Cql::conditional(
    "UPDATE KEYSPACE.emails SET user = ?, claimed_at = ? WHERE namespace = ? AND email = ? \
     IF user = ? AND claimed_at = ?",
);
const FREE: Cql =
    Cql::conditional("DELETE FROM KEYSPACE.emails WHERE namespace = ? AND email = ? IF user = ?");

/// How long whoever claims an email may take to store it with the user: longer than any call.
const CLAIM_LASTS: Duration = Duration::from_secs(60);
const USERS_AT_ONCE: usize = 200;

const ALL: &str = "users";
pub(super) const ADMINS: &str = "users/admins";
const DISABLED: &str = "users/disabled";
const LIMITED: &str = "users/limited";
const WITH_PASSWORD: &str = "users/password";

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
impl Users for CassandraAccounts {
    async fn add_user(&self, user: &User) -> PortResult<bool> {
        const OP: &str = "add a user";
        self.engine.change(OP, self.try_add_user(OP, user)).await
    }

    async fn user(&self, id: OwnerId) -> PortResult<Option<User>> {
        const OP: &str = "look up a user";
        self.engine.look_up(OP, self.find_user(OP, GET, id)).await
    }

    async fn user_by_email(&self, email: &str) -> PortResult<Option<User>> {
        const OP: &str = "look up an email";
        let found = async {
            let Some((id, _)) = self.find_claim(OP, GET_EMAIL, email).await? else {
                return Ok(None);
            };
            let user = self.find_user(OP, GET, id).await?;
            Ok(user.filter(|user| &*user.email == email))
        };
        self.engine.look_up(OP, found).await
    }

    async fn users(&self, after: Option<OwnerId>, limit: usize) -> PortResult<Vec<User>> {
        const OP: &str = "list users";
        self.engine
            .list(OP, self.users_in(OP, ALL, after, limit))
            .await
    }

    async fn update_user(&self, user: &User, seen: UnixMillis) -> PortResult<UserChange> {
        const OP: &str = "update a user";
        self.engine
            .change(OP, self.try_update_user(OP, user, seen))
            .await
    }

    async fn remove_user(&self, id: OwnerId) -> PortResult<UserRemoval> {
        const OP: &str = "remove a user";
        self.engine
            .change_much(OP, self.try_remove_user(OP, id))
            .await
    }

    async fn anybody_can_sign_in(&self) -> PortResult<bool> {
        const OP: &str = "look for a password";
        let found = self.users_in(OP, WITH_PASSWORD, None, 1);
        Ok(!self.engine.list(OP, found).await?.is_empty())
    }

    async fn disabled_users(&self) -> PortResult<Vec<OwnerId>> {
        const OP: &str = "list disabled users";
        let found = self.users_in(OP, DISABLED, None, usize::MAX);
        let users = self.engine.list(OP, found).await?;
        Ok(users.iter().map(|user| user.id).collect())
    }
}

impl CassandraAccounts {
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
        cql: Cql,
        id: OwnerId,
    ) -> PortResult<Option<User>> {
        let row = self.find_user_row(op, cql, id).await?;
        let row = row.filter(|row| !row.removed);
        row.map(|row| row.into_user(op)).transpose()
    }

    async fn find_user_row(
        &self,
        op: &'static str,
        cql: Cql,
        id: OwnerId,
    ) -> PortResult<Option<UserRow>> {
        let values = (&*self.namespace, id.0.cast_signed());
        self.engine.first(op, cql, values).await
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
                    Some(id) => self.find_user(op, GET, id).await,
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
        let mut row = self.find_user_row(op, GET.serial(), user.id).await?;
        if row.as_ref().is_some_and(|row| !row.removed) {
            return Ok(false);
        }
        if !self.claim_email(op, &user.email, user.id).await? {
            return Ok(false);
        }
        let places = lists_of(user).into_iter();
        let places = places.map(|list| user_place(list, user.id));
        self.lists.add(op, places).await?;
        let mark: [u8; 16] = rand::random();
        let mut doubt = Doubt::default();
        loop {
            let cql = match row {
                None => INSERT,
                Some(_) => REINSERT,
            };
            let values = UserWrite::new(&self.namespace, user, &mark);
            match doubt.keep(self.engine.decide(op, cql, values).await)? {
                Decided::Applied => return Ok(true),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            row = doubt.keep(self.find_user_row(op, GET.serial(), user.id).await)?;
            if let Some(row) = row.as_ref().filter(|row| !row.removed) {
                let is_own = row.change_mark == mark;
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
        let mark: [u8; 16] = rand::random();
        let mut doubt = Doubt::default();
        loop {
            let row = self.find_user_row(op, GET.serial(), user.id).await;
            let row = doubt.keep(row)?.filter(|row| !row.removed);
            let Some(row) = row else {
                return doubt.or(UserChange::Absent);
            };
            let is_own = row.change_mark == mark;
            let before = row.into_user(op)?;
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
            let values = UserUpdate {
                user: UserWrite::new(&self.namespace, &after, &mark),
                seen: seen.0,
            };
            let decided = doubt.keep(self.engine.decide(op, UPDATE, values).await)?;
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

    async fn find_claim(
        &self,
        op: &'static str,
        cql: Cql,
        email: &str,
    ) -> PortResult<Option<(OwnerId, UnixMillis)>> {
        let values = (&*self.namespace, email);
        let row: Option<(i64, i64)> = self.engine.first(op, cql, values).await?;
        Ok(row.map(|(user, at)| (OwnerId(user.cast_unsigned()), UnixMillis(at))))
    }

    /// Makes the email the user's, if nobody has it. It counts once the user's own row has it: what a crash leaves is taken
    /// over.
    async fn claim_email(&self, op: &'static str, email: &str, user: OwnerId) -> PortResult<bool> {
        let (namespace, id) = (&*self.namespace, user.0.cast_signed());
        loop {
            let now = SystemClock.now();
            let values = (namespace, email, id, now.0);
            if let Decided::Applied = self.engine.decide(op, CLAIM, values).await? {
                return Ok(true);
            }
            let claim = self.find_claim(op, GET_EMAIL.serial(), email).await?;
            let (owner, claimed_at) = match claim {
                None => continue,
                Some((owner, _)) if owner == user => return Ok(true),
                Some(claim) => claim,
            };
            let owner_row = self.find_user(op, GET.serial(), owner).await?;
            let has_it = owner_row.is_some_and(|owner| &*owner.email == email);
            if has_it || now.since(claimed_at) < CLAIM_LASTS {
                return Ok(false);
            }
            let owner = owner.0.cast_signed();
            let values = (id, now.0, namespace, email, owner, claimed_at.0);
            if let Decided::Applied = self.engine.decide(op, TAKE_OVER, values).await? {
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
        let now = self.find_user(op, GET.serial(), user).await?;
        if now.is_none_or(|now| &*now.email != email) {
            let values = (&*self.namespace, email, user.0.cast_signed());
            self.engine.decide(op, FREE, values).await?;
        }
        Ok(())
    }
}
