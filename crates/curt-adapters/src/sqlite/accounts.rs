use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{Accounts, ApiKey, Owner};
use curt_core::{OwnerId, PortResult, UnixMillis};
use rusqlite::{OptionalExtension, Row};

use super::Sqlite;

pub(super) struct SqliteAccounts {
    db: Arc<Sqlite>,
}

impl SqliteAccounts {
    pub(super) fn new(db: Arc<Sqlite>) -> Self {
        Self { db }
    }
}

const API_KEY_COLUMNS: &str =
    "prefix, secret_hash, owner, name, created_at, expires_at, revoked_at";

#[async_trait]
impl Accounts for SqliteAccounts {
    async fn add_owner(&self, owner: &Owner) -> PortResult<bool> {
        let owner = owner.clone();
        self.db
            .writer
            .write("add an owner", 1, move |work| {
                let added = work
                    .connection
                    .prepare_cached(
                        "INSERT INTO owners (id, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                    )?
                    .execute((owner.id.0.cast_signed(), &*owner.name, owner.created_at.0))?;
                Ok(added == 1)
            })
            .await
    }

    async fn owner_by_name(&self, name: &str) -> PortResult<Option<Owner>> {
        self.db.readers.look_up("find an owner", |connection| {
            connection
                .prepare_cached("SELECT id, name, created_at FROM owners WHERE name = ?1")?
                .query_row([name], owner_of)
                .optional()
        })
    }

    async fn owners(&self) -> PortResult<Vec<Owner>> {
        self.db
            .readers
            .scan("list owners", |connection| {
                connection
                    .prepare_cached(
                        "SELECT id, name, created_at FROM owners ORDER BY created_at, id",
                    )?
                    .query_map((), owner_of)?
                    .collect()
            })
            .await
    }

    async fn add_api_key(&self, key: &ApiKey) -> PortResult<bool> {
        let key = key.clone();
        self.db
            .writer
            .write("add an API key", 1, move |work| {
                let added = work
                    .connection
                    .prepare_cached(&format!(
                        "INSERT INTO api_keys ({API_KEY_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
                         ON CONFLICT DO NOTHING"
                    ))?
                    .execute((
                        &*key.prefix,
                        key.secret_hash,
                        key.owner.0.cast_signed(),
                        &*key.name,
                        key.created_at.0,
                        key.expires_at.map(|at| at.0),
                        key.revoked_at.map(|at| at.0),
                    ))?;
                Ok(added == 1)
            })
            .await
    }

    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>> {
        self.db.readers.look_up("find an API key", |connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {API_KEY_COLUMNS} FROM api_keys WHERE prefix = ?1"
                ))?
                .query_row([prefix], api_key_of)
                .optional()
        })
    }

    async fn api_keys(&self, owner: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        self.db
            .readers
            .scan("list API keys", move |connection| {
                connection
                    .prepare_cached(&format!(
                        "SELECT {API_KEY_COLUMNS} FROM api_keys WHERE ?1 IS NULL OR owner = ?1 \
                         ORDER BY created_at, seq"
                    ))?
                    .query_map([owner.map(|owner| owner.0.cast_signed())], api_key_of)?
                    .collect()
            })
            .await
    }

    async fn revoke_api_key(&self, prefix: &str, now: UnixMillis) -> PortResult<bool> {
        let prefix = prefix.to_owned();
        self.db
            .writer
            .write("revoke an API key", 1, move |work| {
                let revoked = work
                    .connection
                    .prepare_cached(
                        "UPDATE api_keys SET revoked_at = ?2 WHERE prefix = ?1 AND revoked_at IS NULL",
                    )?
                    .execute((&prefix, now.0))?;
                Ok(revoked == 1)
            })
            .await
    }
}

fn owner_of(row: &Row<'_>) -> rusqlite::Result<Owner> {
    Ok(Owner {
        id: OwnerId(row.get::<_, i64>(0)?.cast_unsigned()),
        name: row.get(1)?,
        created_at: UnixMillis(row.get(2)?),
    })
}

fn api_key_of(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        prefix: row.get(0)?,
        secret_hash: row.get(1)?,
        owner: OwnerId(row.get::<_, i64>(2)?.cast_unsigned()),
        name: row.get(3)?,
        created_at: UnixMillis(row.get(4)?),
        expires_at: row.get::<_, Option<i64>>(5)?.map(UnixMillis),
        revoked_at: row.get::<_, Option<i64>>(6)?.map(UnixMillis),
    })
}
