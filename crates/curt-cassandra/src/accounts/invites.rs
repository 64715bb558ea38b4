use async_trait::async_trait;
use curt_core::account::Role;
use curt_core::ports::{Invite, Invites};
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;

use super::CassandraAccounts;
use crate::failure::corrupt;
use crate::pause::pause;
use crate::statement::{Cql, Decided};

pub(super) const GET: Cql = Cql::read(
    "SELECT role, made_by, created_at, expires_at, taken, change_mark FROM KEYSPACE.invites \
     WHERE namespace = ? AND secret_hash = ?",
);
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.invites (namespace, secret_hash, role, made_by, created_at, expires_at, taken, change_mark) \
     VALUES (?, ?, ?, ?, ?, ?, false, ?) IF NOT EXISTS",
);
const TAKE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.invites SET taken = true, change_mark = ? WHERE namespace = ? AND secret_hash = ? \
     IF taken = false AND expires_at > ?",
);

#[derive(DeserializeRow)]
pub(super) struct InviteRow {
    role: i8,
    made_by: i64,
    created_at: i64,
    expires_at: i64,
    pub(super) taken: bool,
    change_mark: Vec<u8>,
}

impl InviteRow {
    pub(super) fn into_invite(
        self,
        op: &'static str,
        secret_hash: &[u8; 32],
    ) -> PortResult<Invite> {
        let role = Role::from_stored(self.role.cast_unsigned());
        Ok(Invite {
            secret_hash: *secret_hash,
            role: role.ok_or_else(|| corrupt(op, self.role))?,
            made_by: OwnerId(self.made_by.cast_unsigned()),
            created_at: UnixMillis(self.created_at),
            expires_at: UnixMillis(self.expires_at),
        })
    }
}

#[async_trait]
impl Invites for CassandraAccounts {
    async fn add_invite(&self, invite: &Invite) -> PortResult<bool> {
        const OP: &str = "add an invitation";
        self.engine
            .change(OP, self.try_add_invite(OP, invite))
            .await
    }

    async fn take_invite(
        &self,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>> {
        const OP: &str = "take an invitation";
        self.engine
            .change(OP, self.try_take_invite(OP, secret_hash, now))
            .await
    }

    async fn invite(&self, secret_hash: &[u8; 32], now: UnixMillis) -> PortResult<Option<Invite>> {
        const OP: &str = "look up an invitation";
        let row = self.find_invite(OP, GET, secret_hash);
        let row = self.engine.look_up(OP, row).await?;
        let row = row.filter(|row| !row.taken && row.expires_at > now.0);
        row.map(|row| row.into_invite(OP, secret_hash)).transpose()
    }
}

impl CassandraAccounts {
    pub(super) async fn find_invite(
        &self,
        op: &'static str,
        cql: Cql,
        secret_hash: &[u8; 32],
    ) -> PortResult<Option<InviteRow>> {
        let values = (&*self.namespace, &secret_hash[..]);
        self.engine.first(op, cql, values).await
    }

    async fn try_add_invite(&self, op: &'static str, invite: &Invite) -> PortResult<bool> {
        let mark: [u8; 16] = rand::random();
        loop {
            let values = (
                &*self.namespace,
                &invite.secret_hash[..],
                invite.role as i8,
                invite.made_by.0.cast_signed(),
                invite.created_at.0,
                invite.expires_at.0,
                &mark[..],
            );
            match self.engine.decide(op, INSERT, values).await? {
                Decided::Applied => return Ok(true),
                Decided::Refused | Decided::Unknown(_) => {}
            }
            let row = self
                .find_invite(op, GET.serial(), &invite.secret_hash)
                .await?;
            if let Some(row) = row {
                return Ok(row.change_mark == mark);
            }
            pause().await;
        }
    }

    async fn try_take_invite(
        &self,
        op: &'static str,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>> {
        let mark: [u8; 16] = rand::random();
        let values = (&mark[..], &*self.namespace, &secret_hash[..], now.0);
        let doubt = match self.engine.decide(op, TAKE, values).await? {
            Decided::Applied => None,
            Decided::Refused => return Ok(None),
            Decided::Unknown(error) => Some(error),
        };
        let row = self.find_invite(op, GET.serial(), secret_hash).await?;
        match (row, doubt) {
            (Some(row), _) if row.taken && row.change_mark == mark => {
                row.into_invite(op, secret_hash).map(Some)
            }
            (Some(row), Some(error)) if !row.taken => Err(error),
            _ => Ok(None),
        }
    }
}
