use async_trait::async_trait;
use curt_core::account::{ApiKeyNumber, Scopes};
use curt_core::ports::{ApiKey, ApiKeys, KeysToRevoke, NewApiKey, QuotaRule, RedirectionLimits};
use curt_core::{OwnerId, PortResult, UnixMillis};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteAccounts, limit, users};
use crate::decode;

// Columns are in the order of `api_key_of` and of what `insert` binds.
const FIND: &str = "SELECT prefix, secret_hash, user, name, scopes, creations_amount, creations_period, \
     redirections_amount, redirections_period, created_at, expires_at, parent, bucket, revoked_at, last_used_at, seq \
     FROM api_keys WHERE prefix = ?1";
const LIST: &str = "SELECT prefix, secret_hash, user, name, scopes, creations_amount, creations_period, \
     redirections_amount, redirections_period, created_at, expires_at, parent, bucket, revoked_at, last_used_at, seq \
     FROM api_keys ORDER BY seq";
const LIST_OF_USER: &str = "SELECT prefix, secret_hash, user, name, scopes, creations_amount, creations_period, \
     redirections_amount, redirections_period, created_at, expires_at, parent, bucket, revoked_at, last_used_at, seq \
     FROM api_keys INDEXED BY api_keys_by_user WHERE user = ?1 ORDER BY seq";
/// Adds a key whose prefix is free, unless its user has another one in force with that name (the row `?14` does not
/// count) or its parent is not in force. It ends with its parent at the latest. The parent `?15` need not be in force,
/// and bounds nothing. Times decide what is in force, so that no index can.
const INSERT: &str = include_str!("sql/insert_api_key.sql");
/// Ends the key `?1`, and what descends from it, at `?2`.
const REVOKE: &str = include_str!("sql/revoke_api_key.sql");
/// Ends the keys of the user `?1`, and what descends from them, at `?2`.
const REVOKE_OF_USER: &str = include_str!("sql/revoke_api_keys_of_user.sql");

#[async_trait]
impl ApiKeys for SqliteAccounts {
    async fn add_api_key(&self, key: &NewApiKey) -> PortResult<Option<ApiKeyNumber>> {
        let key = key.clone();
        self.db
            .writer
            .write("add an API key", 1, move |work| {
                insert(work.connection, &key, None)
            })
            .await
    }

    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>> {
        self.db
            .readers
            .look_up("find an API key", |connection| find(connection, prefix))
    }

    async fn api_keys(&self, user: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        self.db
            .readers
            .scan("list API keys", move |connection| match user {
                Some(user) => connection
                    .prepare_cached(LIST_OF_USER)?
                    .query_map([user.0.cast_signed()], api_key_of)?
                    .collect(),
                None => connection
                    .prepare_cached(LIST)?
                    .query_map((), api_key_of)?
                    .collect(),
            })
            .await
    }

    async fn revoke_api_keys(
        &self,
        which: KeysToRevoke<'_>,
        at: UnixMillis,
    ) -> PortResult<Vec<Box<str>>> {
        let (sql, named) = match which {
            KeysToRevoke::Prefix(prefix) => (REVOKE, SqlValue::from(prefix.to_owned())),
            KeysToRevoke::User(user) => (REVOKE_OF_USER, user.0.cast_signed().into()),
        };
        self.db
            .writer
            .write("revoke API keys", 1, move |work| {
                let mut ended: Vec<Box<str>> = work
                    .connection
                    .prepare_cached(sql)?
                    .query_map((&named, at.0), |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                ended.sort_unstable();
                Ok(ended)
            })
            .await
    }

    async fn rotate_api_key(
        &self,
        prefix: &str,
        retired_name: &str,
        ends_at: UnixMillis,
        successor: &NewApiKey,
    ) -> PortResult<Option<ApiKeyNumber>> {
        let (prefix, retired_name) = (prefix.to_owned(), retired_name.to_owned());
        let successor = successor.clone();
        self.db
            .writer
            .write("rotate an API key", 2, move |work| {
                rotate(work.connection, &prefix, &retired_name, ends_at, &successor)
            })
            .await
    }

    async fn touch_api_keys(&self, used: &[(Box<str>, UnixMillis)]) -> PortResult<()> {
        if used.is_empty() {
            return Ok(());
        }
        let used = used.to_vec();
        self.db
            .writer
            .write("note the use of API keys", used.len(), move |work| {
                let mut touch = work.connection.prepare_cached(
                    "UPDATE api_keys SET last_used_at = ?2 \
                     WHERE prefix = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)",
                )?;
                for (prefix, at) in &used {
                    touch.execute((&**prefix, at.0))?;
                }
                Ok(())
            })
            .await
    }

    async fn redirection_limits(&self) -> PortResult<RedirectionLimits> {
        self.db
            .readers
            .scan_in_background("list limits on redirections", |connection| {
                Ok(RedirectionLimits {
                    users: users::redirection_limits(connection)?,
                    keys: redirection_limits(connection)?,
                })
            })
            .await
    }
}

fn find(connection: &Connection, prefix: &str) -> rusqlite::Result<Option<ApiKey>> {
    connection
        .prepare_cached(FIND)?
        .query_row([prefix], api_key_of)
        .optional()
}

/// Adds the key if nothing stands in its way; the name and the parent of `replaced` do not.
fn insert(
    connection: &Connection,
    key: &NewApiKey,
    replaced: Option<&ApiKey>,
) -> rusqlite::Result<Option<ApiKeyNumber>> {
    let (creations, creations_period) = limit::columns(key.allowance.creations);
    let (redirections, redirections_period) = limit::columns(key.allowance.redirections);
    connection
        .prepare_cached(INSERT)?
        .query_row(
            params![
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
                key.parent.as_deref(),
                key.bucket.map(|number| number.0),
                replaced.map(|old| old.number.0),
                replaced.and_then(|old| old.parent.as_deref()),
            ],
            |row| row.get(0).map(ApiKeyNumber),
        )
        .optional()
}

fn rotate(
    connection: &Connection,
    prefix: &str,
    retired_name: &str,
    ends_at: UnixMillis,
    successor: &NewApiKey,
) -> rusqlite::Result<Option<ApiKeyNumber>> {
    let replaceable = |key: &ApiKey| key.revoked_at.is_none() && key.user == successor.user;
    let Some(old) = find(connection, prefix)?.filter(replaceable) else {
        return Ok(None);
    };
    let successor = NewApiKey {
        name: old.name.clone(),
        ..successor.clone()
    };
    let number = insert(connection, &successor, Some(&old))?;
    if number.is_some() {
        connection
            .prepare_cached("UPDATE api_keys SET name = ?2, revoked_at = ?3 WHERE seq = ?1")?
            .execute((old.number.0, retired_name, ends_at.0))?;
    }
    Ok(number)
}

fn redirection_limits(connection: &Connection) -> rusqlite::Result<Vec<(ApiKeyNumber, QuotaRule)>> {
    let limits = connection
        .prepare_cached(
            "SELECT seq, redirections_amount, redirections_period FROM api_keys INDEXED BY api_keys_with_limit \
             WHERE redirections_amount IS NOT NULL ORDER BY seq",
        )?
        .query_map((), |row| {
            let number = ApiKeyNumber(row.get(0)?);
            Ok(limit::rule_of(row, 1)?.map(|rule| (number, rule)))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(limits.into_iter().flatten().collect())
}

fn api_key_of(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let millis =
        |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(UnixMillis));
    let number = row.get(15)?;
    Ok(ApiKey {
        prefix: row.get(0)?,
        secret_hash: row.get(1)?,
        user: OwnerId(row.get::<_, i64>(2)?.cast_unsigned()),
        name: row.get(3)?,
        scopes: decode::number(row, 4, Scopes::from_stored)?,
        allowance: limit::allowance_of(row, 5)?,
        created_at: UnixMillis(row.get(9)?),
        expires_at: millis(10)?,
        parent: row.get(11)?,
        bucket: ApiKeyNumber(row.get::<_, Option<u32>>(12)?.unwrap_or(number)),
        revoked_at: millis(13)?,
        last_used_at: millis(14)?,
        number: ApiKeyNumber(number),
    })
}
