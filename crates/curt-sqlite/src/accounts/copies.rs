use async_trait::async_trait;
use curt_adapter_kit::{AccountCopies, AccountPart};
use curt_core::ports::{ApiKey, AuditEntry, Invite, Permission};
use curt_core::{ErrorKind, PortError, PortResult};
use rusqlite::{Connection, OptionalExtension, params};

use super::invites::invite_of;
use super::permissions::permission_of;
use super::{SqliteAccounts, limit};
use crate::failure::BACKEND;

const OP_EXPORT: &str = "export accounts";
const OP_IMPORT: &str = "import accounts";
const ROWS_AT_ONCE: usize = 1_000;

const PUT_API_KEY: &str = "INSERT INTO api_keys (seq, prefix, secret_hash, user, name, scopes, creations_amount, \
     creations_period, redirections_amount, redirections_period, created_at, expires_at, revoked_at, parent, bucket) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, nullif(?15, ?1)) \
     ON CONFLICT (prefix) DO UPDATE SET secret_hash = excluded.secret_hash, user = excluded.user, name = excluded.name, \
     scopes = excluded.scopes, creations_amount = excluded.creations_amount, creations_period = excluded.creations_period, \
     redirections_amount = excluded.redirections_amount, redirections_period = excluded.redirections_period, \
     created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, \
     parent = excluded.parent, bucket = excluded.bucket";

#[async_trait]
impl AccountCopies for SqliteAccounts {
    async fn all_invites(&self, after: Option<&str>) -> PortResult<AccountPart<Invite>> {
        let after = after
            .map_or(Some(Vec::new()), bytes_of_hex)
            .ok_or_else(wrong_position)?;
        let read = move |connection: &Connection| {
            connection
                .prepare_cached(
                    "SELECT secret_hash, role, made_by, created_at, expires_at FROM invites \
                     WHERE secret_hash > ?1 ORDER BY secret_hash LIMIT ?2",
                )?
                .query_map((after, super::rows_max(ROWS_AT_ONCE)), invite_of)?
                .collect::<rusqlite::Result<Vec<Invite>>>()
        };
        let invites = self.db.readers.scan_in_background(OP_EXPORT, read).await?;
        let last = invites.last().filter(|_| invites.len() == ROWS_AT_ONCE);
        let next = last.map(|last| hex_of_bytes(&last.secret_hash));
        Ok((invites, next))
    }

    async fn all_permissions(&self, after: Option<&str>) -> PortResult<AccountPart<Permission>> {
        let after = after.map_or(Ok(0), str::parse::<i64>);
        let after = after.map_err(|_| wrong_position())?;
        let read = move |connection: &Connection| {
            connection
                .prepare_cached(
                    "SELECT domain, key, generation, user, granted_at, id FROM permissions \
                     WHERE id > ?1 ORDER BY id LIMIT ?2",
                )?
                .query_map((after, super::rows_max(ROWS_AT_ONCE)), permission_of)?
                .collect::<rusqlite::Result<Vec<Permission>>>()
        };
        let permissions = self.db.readers.scan_in_background(OP_EXPORT, read).await?;
        let last = permissions
            .last()
            .filter(|_| permissions.len() == ROWS_AT_ONCE);
        let next = last.map(|last| last.id.0.to_string().into());
        Ok((permissions, next))
    }

    async fn put_api_key(&self, key: &ApiKey) -> PortResult<bool> {
        let key = key.clone();
        self.db
            .writer
            .write(OP_IMPORT, 1, move |work| put_api_key(work.connection, &key))
            .await
    }

    async fn put_audit(&self, entries: &[(u64, AuditEntry)]) -> PortResult<u64> {
        let entries = entries.to_vec();
        self.db
            .writer
            .write(OP_IMPORT, entries.len(), move |work| {
                let mut put = work.connection.prepare_cached(
                    "INSERT INTO audit (seq, at, actor, action, subject, address) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                     ON CONFLICT DO NOTHING",
                )?;
                let mut added = 0;
                for (number, entry) in &entries {
                    added += put.execute((
                        number.cast_signed(),
                        entry.at.0,
                        entry.actor.map(|actor| actor.0.cast_signed()),
                        &*entry.action,
                        &*entry.subject,
                        entry.address.as_deref(),
                    ))?;
                }
                Ok(added as u64)
            })
            .await
    }
}

fn put_api_key(connection: &Connection, key: &ApiKey) -> rusqlite::Result<bool> {
    let others: Option<i64> = connection
        .prepare_cached(
            "SELECT 1 FROM api_keys WHERE (seq = ?1 AND prefix <> ?2) OR (prefix = ?2 AND seq <> ?1) LIMIT 1",
        )?
        .query_row((key.number.0, &*key.prefix), |row| row.get(0))
        .optional()?;
    if others.is_some() {
        return Ok(false);
    }
    let (creations, creations_period) = limit::columns(key.allowance.creations);
    let (redirections, redirections_period) = limit::columns(key.allowance.redirections);
    connection.prepare_cached(PUT_API_KEY)?.execute(params![
        key.number.0,
        &*key.prefix,
        key.secret_hash,
        key.user.0.cast_signed(),
        &*key.name,
        key.scopes.stored(),
        creations,
        creations_period,
        redirections,
        redirections_period,
        key.created_at.0,
        key.expires_at.map(|at| at.0),
        key.revoked_at.map(|at| at.0),
        key.parent.as_deref(),
        key.bucket.0,
    ])?;
    Ok(true)
}

fn hex_of_bytes(bytes: &[u8]) -> Box<str> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.into()
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = (0..text.len()).step_by(2);
    let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    digits.map(byte).collect()
}

fn wrong_position() -> PortError {
    let detail = "the position is not one of this database";
    PortError::new(ErrorKind::Invalid, BACKEND, OP_EXPORT, detail)
}
