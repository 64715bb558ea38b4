use async_trait::async_trait;
use curt_core::account::{ApiKeyNumber, Scopes};
use curt_core::ports::{ApiKey, ApiKeys, KeysToRevoke, NewApiKey, QuotaRule, RedirectionLimits};
use curt_core::{OwnerId, PortResult, UnixMillis};
use tokio_postgres::Row;

use super::{PostgresAccounts, limit, users};
use crate::decode::{hash, number, owner, small, time, time_or_none};
use crate::engine::{Engine, Step, Value, column};

// Columns are in the order of `api_key_of` and of `NewKey`.
const FIND: &str = "SELECT prefix, secret_hash, user_id, name, scopes, creations_amount, creations_period, \
     redirections_amount, redirections_period, created_at, expires_at, parent, bucket, revoked_at, last_used_at, seq \
     FROM api_keys WHERE prefix = $1";
const LIST: &str = "SELECT prefix, secret_hash, user_id, name, scopes, creations_amount, creations_period, \
     redirections_amount, redirections_period, created_at, expires_at, parent, bucket, revoked_at, last_used_at, seq \
     FROM api_keys WHERE $1::bigint IS NULL OR user_id = $1 ORDER BY seq";
/// Times decide which names are taken, so that no index can: whoever adds a key for a user does so alone. A statement of
/// its own before the insert, which has to see what the one before it did.
const LOCK_USER: &str = "SELECT pg_advisory_xact_lock(hashtextextended('api_keys', $1))";
/// Held while a key with a parent is added and while keys are revoked, so that no key is added below one whose family is
/// being ended.
const LOCK_FAMILIES: &str = "SELECT pg_advisory_xact_lock(hashtextextended('api_key_families', 0))";
/// Adds a key unless its user has another one in force with that name, or its parent is not in force. It ends with its
/// parent at the latest.
const INSERT: &str = include_str!("sql/insert_api_key.sql");
/// Adds a key with the name of the key `$14`, which gets the name `$4` and ends at `$15`.
const ROTATE: &str = include_str!("sql/rotate_api_key.sql");
/// Ends the key `$1`, and what descends from it, at `$2`.
const REVOKE: &str = include_str!("sql/revoke_api_key.sql");
/// Ends the keys of the user `$1`, and what descends from them, at `$2`.
const REVOKE_OF_USER: &str = include_str!("sql/revoke_api_keys_of_user.sql");
/// Locks in the order of prefixes, so that two processes that note the same keys do not wait in a circle.
const TOUCH: &str = "WITH used AS (SELECT prefix, max(at) AS at FROM unnest($1::text[], $2::bigint[]) \
     AS used (prefix, at) GROUP BY prefix), \
     noted AS MATERIALIZED (SELECT k.seq, used.at FROM api_keys AS k JOIN used ON used.prefix = k.prefix \
     WHERE k.last_used_at IS NULL OR k.last_used_at < used.at ORDER BY k.prefix FOR UPDATE OF k) \
     UPDATE api_keys AS k SET last_used_at = greatest(k.last_used_at, noted.at) FROM noted WHERE k.seq = noted.seq";
const WITH_LIMIT: &str = "SELECT seq, redirections_amount, redirections_period FROM api_keys \
     WHERE redirections_amount IS NOT NULL ORDER BY seq";

#[async_trait]
impl ApiKeys for PostgresAccounts {
    async fn add_api_key(&self, key: &NewApiKey) -> PortResult<Option<ApiKeyNumber>> {
        let engine = self.tables.engine().await?;
        insert(engine, "add an API key", INSERT, key, &[]).await
    }

    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>> {
        const OP: &str = "find an API key";
        let engine = self.tables.lookups().await?;
        let row = engine.look_up(OP, FIND, &[&prefix]).await?;
        row.map(|row| api_key_of(OP, &row)).transpose()
    }

    async fn api_keys(&self, user: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        const OP: &str = "list API keys";
        let user = user.map(|user| user.0.cast_signed());
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, LIST, &[&user]).await?;
        rows.iter().map(|row| api_key_of(OP, row)).collect()
    }

    async fn revoke_api_keys(
        &self,
        which: KeysToRevoke<'_>,
        at: UnixMillis,
    ) -> PortResult<Vec<Box<str>>> {
        const OP: &str = "revoke API keys";
        let engine = self.tables.engine().await?;
        let revoke = async |sql, named: Value<'_>| {
            let lock = Step {
                sql: LOCK_FAMILIES,
                values: &[],
            };
            let revoke = Step {
                sql,
                values: &[named, &at.0],
            };
            engine.transact(OP, &[lock, revoke]).await
        };
        let answers = match which {
            KeysToRevoke::Prefix(prefix) => revoke(REVOKE, &prefix).await?,
            KeysToRevoke::User(user) => revoke(REVOKE_OF_USER, &user.0.cast_signed()).await?,
        };
        let ended = answers.last().map(Vec::as_slice).unwrap_or_default();
        ended.iter().map(|row| column(OP, row, 0)).collect()
    }

    async fn rotate_api_key(
        &self,
        prefix: &str,
        retired_name: &str,
        ends_at: UnixMillis,
        successor: &NewApiKey,
    ) -> PortResult<Option<ApiKeyNumber>> {
        let engine = self.tables.engine().await?;
        // The successor's own name is not used.
        let key = NewApiKey {
            name: retired_name.into(),
            ..successor.clone()
        };
        let op = "rotate an API key";
        insert(engine, op, ROTATE, &key, &[&prefix, &ends_at.0]).await
    }

    async fn touch_api_keys(&self, used: &[(Box<str>, UnixMillis)]) -> PortResult<()> {
        if used.is_empty() {
            return Ok(());
        }
        let pairs = used.iter().map(|(prefix, at)| (&**prefix, at.0));
        let (prefixes, times): (Vec<&str>, Vec<i64>) = pairs.unzip();
        let engine = self.tables.engine().await?.in_background();
        let values: [Value<'_>; 2] = [&prefixes, &times];
        let op = "note the use of API keys";
        engine.write(op, TOUCH, &values).await.map(drop)
    }

    async fn redirection_limits(&self) -> PortResult<RedirectionLimits> {
        const OP: &str = "list limits on redirections";
        let engine = self.tables.engine().await?;
        Ok(RedirectionLimits {
            users: users::redirection_limits(engine, OP).await?,
            keys: redirection_limits(engine, OP).await?,
        })
    }
}

/// Runs [`INSERT`] or [`ROTATE`] and returns the number of the new key.
async fn insert(
    engine: &Engine,
    op: &'static str,
    sql: &str,
    key: &NewApiKey,
    rest: &[Value<'_>],
) -> PortResult<Option<ApiKeyNumber>> {
    let user = key.user.0.cast_signed();
    let hash = &key.secret_hash[..];
    let scopes = i16::from(key.scopes.stored());
    let allowance = limit::Columns::of(key.allowance);
    let expires_at = key.expires_at.map(|at| at.0);
    let (prefix, name) = (&*key.prefix, &*key.name);
    let mut values: Vec<Value<'_>> = vec![&prefix, &hash, &user, &name, &scopes];
    values.extend(allowance.values());
    let parent = key.parent.as_deref();
    let bucket = key.bucket.map(|number| i64::from(number.0));
    values.extend([
        &key.created_at.0 as Value<'_>,
        &expires_at,
        &parent,
        &bucket,
    ]);
    values.extend(rest);
    let lock_user = Step {
        sql: LOCK_USER,
        values: &[&user],
    };
    let lock_families = Step {
        sql: LOCK_FAMILIES,
        values: &[],
    };
    let insert = Step {
        sql,
        values: &values,
    };
    let steps = match parent {
        Some(_) => vec![lock_user, lock_families, insert],
        None => vec![lock_user, insert],
    };
    let answers = engine.transact(op, &steps).await?;
    let row = answers.last().and_then(|rows| rows.first());
    row.map(|row| number_of(op, row, 0)).transpose()
}

async fn redirection_limits(
    engine: &Engine,
    op: &'static str,
) -> PortResult<Vec<(ApiKeyNumber, QuotaRule)>> {
    let rows = engine.read(op, WITH_LIMIT, &[]).await?;
    let mut limits = Vec::new();
    for row in &rows {
        let number = number_of(op, row, 0)?;
        limits.extend(limit::rule_of(op, row, 1)?.map(|rule| (number, rule)));
    }
    Ok(limits)
}

fn number_of(op: &'static str, row: &Row, index: usize) -> PortResult<ApiKeyNumber> {
    small(op, column(op, row, index)?).map(ApiKeyNumber)
}

fn api_key_of(op: &'static str, row: &Row) -> PortResult<ApiKey> {
    let number_of_key = number_of(op, row, 15)?;
    let bucket: Option<i64> = column(op, row, 12)?;
    let bucket = bucket.map(|bucket| small(op, bucket).map(ApiKeyNumber));
    Ok(ApiKey {
        prefix: column(op, row, 0)?,
        secret_hash: hash(op, row, 1)?,
        user: owner(op, row, 2)?,
        name: column(op, row, 3)?,
        scopes: number(op, row, 4, Scopes::from_stored)?,
        allowance: limit::allowance_of(op, row, 5)?,
        created_at: time(op, row, 9)?,
        expires_at: time_or_none(op, row, 10)?,
        parent: column(op, row, 11)?,
        bucket: bucket.transpose()?.unwrap_or(number_of_key),
        revoked_at: time_or_none(op, row, 13)?,
        last_used_at: time_or_none(op, row, 14)?,
        number: number_of_key,
    })
}
