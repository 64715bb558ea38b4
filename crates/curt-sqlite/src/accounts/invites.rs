use async_trait::async_trait;
use curt_core::account::Role;
use curt_core::ports::{Invite, Invites, OpenInvites};
use curt_core::{OwnerId, PortResult, UnixMillis};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{SqliteAccounts, rows_max};
use crate::decode;

#[async_trait]
impl Invites for SqliteAccounts {
    async fn add_invite(&self, invite: &Invite) -> PortResult<bool> {
        let invite = invite.clone();
        self.db
            .writer
            .write("add an invitation", 1, move |work| {
                let added = work
                    .connection
                    .prepare_cached(
                        "INSERT INTO invites (secret_hash, role, made_by, created_at, expires_at) \
                         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                    )?
                    .execute((
                        invite.secret_hash,
                        invite.role as u8,
                        invite.made_by.0.cast_signed(),
                        invite.created_at.0,
                        invite.expires_at.0,
                    ))?;
                Ok(added == 1)
            })
            .await
    }

    async fn take_invite(
        &self,
        secret_hash: &[u8; 32],
        now: UnixMillis,
    ) -> PortResult<Option<Invite>> {
        let secret_hash = *secret_hash;
        self.db
            .writer
            .write("take an invitation", 1, move |work| {
                work.connection
                    .prepare_cached(
                        "DELETE FROM invites WHERE secret_hash = ?1 AND expires_at > ?2 \
                         RETURNING secret_hash, role, made_by, created_at, expires_at",
                    )?
                    .query_row((secret_hash, now.0), invite_of)
                    .optional()
            })
            .await
    }

    async fn invite(&self, secret_hash: &[u8; 32], now: UnixMillis) -> PortResult<Option<Invite>> {
        self.db.readers.look_up("find an invitation", |connection| {
            connection
                .prepare_cached(
                    "SELECT secret_hash, role, made_by, created_at, expires_at FROM invites \
                     WHERE secret_hash = ?1 AND expires_at > ?2",
                )?
                .query_row((secret_hash, now.0), invite_of)
                .optional()
        })
    }

    async fn invites(&self, now: UnixMillis, limit: usize) -> PortResult<OpenInvites> {
        let read = move |connection: &Connection| {
            connection
                .prepare_cached(
                    "SELECT secret_hash, role, made_by, created_at, expires_at FROM invites \
                     WHERE expires_at > ?1 ORDER BY expires_at, secret_hash LIMIT ?2",
                )?
                .query_map((now.0, rows_max(limit.saturating_add(1))), invite_of)?
                .collect::<rusqlite::Result<Vec<Invite>>>()
        };
        let found = self.db.readers.scan("list invitations", read).await?;
        Ok(OpenInvites::of(found, limit))
    }
}

pub(super) fn invite_of(row: &Row<'_>) -> rusqlite::Result<Invite> {
    Ok(Invite {
        secret_hash: row.get(0)?,
        role: decode::number(row, 1, Role::from_stored)?,
        made_by: OwnerId(row.get::<_, i64>(2)?.cast_unsigned()),
        created_at: UnixMillis(row.get(3)?),
        expires_at: UnixMillis(row.get(4)?),
    })
}
