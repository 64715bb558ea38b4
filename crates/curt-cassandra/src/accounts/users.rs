use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{PendingRemoval, StoredUser, UserRows};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode};
use curt_core::account::User;
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::CassandraAccounts;
use super::user_record::{GET, INSERT, REINSERT, REMOVE, UPDATE, UserRow, UserUpdate, UserWrite};
use crate::statement::Cql;

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

const GET_REMOVAL: Cql = Cql::read(
    "SELECT version, pending FROM KEYSPACE.removals WHERE namespace = ? AND what = 'administrators'",
)
.serial();
const BEGIN_FIRST: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.removals (namespace, what, version, pending) VALUES (?, 'administrators', 1, ?) IF NOT EXISTS",
);
const BEGIN: Cql = Cql::conditional(
    "UPDATE KEYSPACE.removals SET version = ?, pending = ? WHERE namespace = ? AND what = 'administrators' \
     IF version = ?",
);

#[async_trait]
impl UserRows for CassandraAccounts {
    async fn get_user(
        &self,
        op: &'static str,
        id: OwnerId,
        mode: ReadMode,
    ) -> PortResult<Option<StoredUser>> {
        let values = (&*self.namespace, id.0.cast_signed());
        let row: Option<UserRow> = self.engine.first(op, GET.at(mode), values).await?;
        row.map(|row| row.into_stored(op)).transpose()
    }

    async fn insert_user(
        &self,
        op: &'static str,
        user: &User,
        mark: Mark,
        is_over_removed: bool,
    ) -> PortResult<Decided> {
        let cql = match is_over_removed {
            false => INSERT,
            true => REINSERT,
        };
        let values = UserWrite::new(&self.namespace, user, &mark.0);
        self.engine.decide(op, cql, values).await
    }

    async fn update_user(
        &self,
        op: &'static str,
        user: &User,
        seen: UnixMillis,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = UserUpdate {
            user: UserWrite::new(&self.namespace, user, &mark.0),
            seen: seen.0,
        };
        self.engine.decide(op, UPDATE, values).await
    }

    async fn remove_user(&self, op: &'static str, id: OwnerId, mark: Mark) -> PortResult<Decided> {
        let values = (&mark.0[..], &*self.namespace, id.0.cast_signed());
        self.engine.decide(op, REMOVE, values).await
    }

    async fn get_email(
        &self,
        op: &'static str,
        email: &str,
        mode: ReadMode,
    ) -> PortResult<Option<(OwnerId, UnixMillis)>> {
        let values = (&*self.namespace, email);
        let row: Option<(i64, i64)> = self.engine.first(op, GET_EMAIL.at(mode), values).await?;
        Ok(row.map(|(user, at)| (OwnerId(user.cast_unsigned()), UnixMillis(at))))
    }

    async fn claim_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
        at: UnixMillis,
    ) -> PortResult<Decided> {
        let values = (&*self.namespace, email, user.0.cast_signed(), at.0);
        self.engine.decide(op, CLAIM, values).await
    }

    async fn take_over_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
        at: UnixMillis,
        seen: (OwnerId, UnixMillis),
    ) -> PortResult<Decided> {
        let (owner, claimed_at) = (seen.0.0.cast_signed(), seen.1.0);
        let user = user.0.cast_signed();
        let values = (user, at.0, &*self.namespace, email, owner, claimed_at);
        self.engine.decide(op, TAKE_OVER, values).await
    }

    async fn free_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
    ) -> PortResult<Decided> {
        let values = (&*self.namespace, email, user.0.cast_signed());
        self.engine.decide(op, FREE, values).await
    }

    async fn get_removal(&self, op: &'static str) -> PortResult<Option<PendingRemoval>> {
        let values = (&*self.namespace,);
        let row: Option<(i64, Option<i64>)> = self.engine.first(op, GET_REMOVAL, values).await?;
        Ok(row.map(|(version, pending)| PendingRemoval {
            version,
            pending: pending.map(|id| OwnerId(id.cast_unsigned())),
        }))
    }

    async fn set_removal(
        &self,
        op: &'static str,
        seen: Option<i64>,
        pending: Option<OwnerId>,
    ) -> PortResult<Decided> {
        let (namespace, pending) = (&*self.namespace, pending.map(|id| id.0.cast_signed()));
        match seen {
            None => {
                let values = (namespace, pending);
                self.engine.decide(op, BEGIN_FIRST, values).await
            }
            Some(version) => {
                let values = (version + 1, pending, namespace, version);
                self.engine.decide(op, BEGIN, values).await
            }
        }
    }
}
