//! The end of users. An administrator may go while there is another one, and of two who remove each other one must stay:
//! removals of administrators are decided one after the other, in a row of their own.

use curt_core::account::Role;
use curt_core::ports::UserRemoval;
use curt_core::{OwnerId, PortResult};

use super::CassandraAccounts;
use super::user_record::{GET, REMOVE};
use super::users::ADMINS;
use crate::pause::pause;
use crate::statement::{Cql, Decided};

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

impl CassandraAccounts {
    pub(super) async fn try_remove_user(
        &self,
        op: &'static str,
        id: OwnerId,
    ) -> PortResult<UserRemoval> {
        let _turn = self.user_turn.lock().await;
        loop {
            let Some(user) = self.find_user(op, GET.serial(), id).await? else {
                return Ok(UserRemoval::Absent);
            };
            if user.role != Role::Admin {
                return Ok(match self.remove_rows(op, id).await? {
                    true => UserRemoval::Removed,
                    false => UserRemoval::Absent,
                });
            }
            let state: Option<(i64, Option<i64>)> = self
                .engine
                .first(op, GET_REMOVAL, (&*self.namespace,))
                .await?;
            if let Some((version, Some(pending))) = state {
                // Whoever began it may be gone: it is done first, so that what is counted below is what is left.
                self.finish_removal(op, version, pending).await?;
                continue;
            }
            let admins = self.users_in(op, ADMINS, None, usize::MAX).await?;
            if !admins.iter().any(|other| other.id != id) {
                return Ok(UserRemoval::LastAdmin);
            }
            let version = state.map(|(version, _)| version);
            if self.begin_removal(op, version, id).await? {
                let version = version.unwrap_or(0) + 1;
                self.finish_removal(op, version, id.0.cast_signed()).await?;
                return Ok(UserRemoval::Removed);
            }
            pause().await;
        }
    }

    /// Decides that this administrator goes, if no other removal was decided since `version`.
    async fn begin_removal(
        &self,
        op: &'static str,
        version: Option<i64>,
        id: OwnerId,
    ) -> PortResult<bool> {
        let (namespace, id) = (&*self.namespace, id.0.cast_signed());
        let decided = match version {
            None => self.engine.decide(op, BEGIN_FIRST, (namespace, id)).await?,
            Some(version) => {
                let values = (version + 1, id, namespace, version);
                self.engine.decide(op, BEGIN, values).await?
            }
        };
        match decided {
            Decided::Applied => Ok(true),
            Decided::Refused => Ok(false),
            // If it was begun, the next removal finishes it.
            Decided::Unknown(error) => Err(error),
        }
    }

    async fn finish_removal(&self, op: &'static str, version: i64, id: i64) -> PortResult<()> {
        self.remove_rows(op, OwnerId(id.cast_unsigned())).await?;
        let values = (version + 1, None::<i64>, &*self.namespace, version);
        self.engine.decide(op, BEGIN, values).await.map(drop)
    }

    /// Removes what is the user's, the user last, and says whether this call did: what a crash leaves can be removed again.
    async fn remove_rows(&self, op: &'static str, id: OwnerId) -> PortResult<bool> {
        let email = self.find_user(op, GET.serial(), id).await?;
        self.revoke_permissions_of(op, id).await?;
        self.end_sessions_of(op, id, None).await?;
        let mark: [u8; 16] = rand::random();
        let values = (&mark[..], &*self.namespace, id.0.cast_signed());
        let is_removed = match self.engine.decide(op, REMOVE, values).await? {
            Decided::Applied => true,
            Decided::Refused => false,
            Decided::Unknown(error) => return Err(error),
        };
        if let Some(user) = email {
            self.free_email(op, &user.email, id).await?;
        }
        Ok(is_removed)
    }
}
