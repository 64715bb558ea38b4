use async_trait::async_trait;
use curt_core::account::Role;
use curt_core::ports::{Invite, Invites, OpenInvites};
use curt_core::{PortResult, UnixMillis};
use tokio_postgres::Row;

use super::PostgresAccounts;
use crate::decode::{hash, number, owner, time};
use crate::engine::Value;

const INSERT: &str = "INSERT INTO invites (secret_hash, role, made_by, created_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING 1";
const TAKE: &str = "DELETE FROM invites WHERE secret_hash = $1 AND expires_at > $2 \
     RETURNING secret_hash, role, made_by, created_at, expires_at";
const FIND: &str = "SELECT secret_hash, role, made_by, created_at, expires_at FROM invites \
     WHERE secret_hash = $1 AND expires_at > $2";
const LIST: &str = "SELECT secret_hash, role, made_by, created_at, expires_at FROM invites \
     WHERE expires_at > $1 ORDER BY expires_at, secret_hash LIMIT $2";

#[async_trait]
impl Invites for PostgresAccounts {
    async fn add_invite(&self, invite: &Invite) -> PortResult<bool> {
        let values: [Value<'_>; 5] = [
            &&invite.secret_hash[..],
            &(invite.role as i16),
            &invite.made_by.0.cast_signed(),
            &invite.created_at.0,
            &invite.expires_at.0,
        ];
        let engine = self.tables.engine().await?;
        let rows = engine.write("add an invitation", INSERT, &values).await?;
        Ok(!rows.is_empty())
    }

    async fn take_invite(
        &self,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>> {
        const OP: &str = "take an invitation";
        let engine = self.tables.engine().await?;
        let values: [Value<'_>; 2] = [&&secret_hash[..], &now.0];
        let rows = engine.write(OP, TAKE, &values).await?;
        rows.first().map(|row| invite_of(OP, row)).transpose()
    }

    async fn invite(&self, secret_hash: &[u8; 32], now: UnixMillis) -> PortResult<Option<Invite>> {
        const OP: &str = "find an invitation";
        let engine = self.tables.engine().await?;
        let values: [Value<'_>; 2] = [&&secret_hash[..], &now.0];
        let rows = engine.read_latest(OP, FIND, &values).await?;
        rows.first().map(|row| invite_of(OP, row)).transpose()
    }

    async fn invites(&self, now: UnixMillis, limit: usize) -> PortResult<OpenInvites> {
        const OP: &str = "list invitations";
        let rows_max = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
        let engine = self.tables.engine().await?;
        let values: [Value<'_>; 2] = [&now.0, &rows_max];
        let rows = engine.read(OP, LIST, &values).await?;
        let found = rows.iter().map(|row| invite_of(OP, row));
        Ok(OpenInvites::of(found.collect::<PortResult<_>>()?, limit))
    }
}

pub(super) fn invite_of(op: &'static str, row: &Row) -> PortResult<Invite> {
    Ok(Invite {
        secret_hash: hash(op, row, 0)?,
        role: number(op, row, 1, Role::from_stored)?,
        made_by: owner(op, row, 2)?,
        created_at: time(op, row, 3)?,
        expires_at: time(op, row, 4)?,
    })
}
