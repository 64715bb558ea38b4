use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::accounts::{ApiKeyRows, LoadedKeys};
use curt_adapter_kit::wide_column::{Decided, ReadMode, together};
use curt_core::account::{Allowance, ApiKeyNumber, Scopes};
use curt_core::ports::ApiKey;
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;
use scylla::value::CqlValue;

use super::{CassandraAccounts, millis, rule_columns, rule_of};
use crate::failure::corrupt;
use crate::statement::Cql;

macro_rules! columns {
    () => {
        "prefix, version, number, secret_hash, user, name, scopes, creations_amount, creations_period, \
         redirections_amount, redirections_period, created_at, expires_at, revoked_at, parent, bucket"
    };
}

const GET: Cql = Cql::read(concat!(
    "SELECT ",
    columns!(),
    " FROM KEYSPACE.api_keys WHERE namespace = ? AND family = 'all' AND prefix = ?"
));
const GET_ALL: Cql = Cql::read(concat!(
    "SELECT ",
    columns!(),
    " FROM KEYSPACE.api_keys WHERE namespace = ? AND family = 'all'"
));
const VERSION: Cql = Cql::conditional(
    "UPDATE KEYSPACE.api_keys SET version = ? WHERE namespace = ? AND family = 'all' IF version = ?",
);
const PUT: Cql = Cql::conditional(
    "UPDATE KEYSPACE.api_keys SET number = ?, secret_hash = ?, user = ?, name = ?, scopes = ?, creations_amount = ?, \
     creations_period = ?, redirections_amount = ?, redirections_period = ?, created_at = ?, expires_at = ?, \
     revoked_at = ?, parent = ?, bucket = ? WHERE namespace = ? AND family = 'all' AND prefix = ?",
);
const GET_USE: Cql =
    Cql::read("SELECT used_at FROM KEYSPACE.api_key_uses WHERE namespace = ? AND prefix = ?");
const PUT_USE: Cql = Cql::write(
    "INSERT INTO KEYSPACE.api_key_uses (namespace, prefix, used_at) VALUES (?, ?, ?) USING TIMESTAMP ?",
);

#[derive(DeserializeRow)]
struct KeyRow {
    prefix: Option<String>,
    version: Option<i64>,
    number: Option<i64>,
    secret_hash: Option<Vec<u8>>,
    user: Option<i64>,
    name: Option<String>,
    scopes: Option<i8>,
    creations_amount: Option<i64>,
    creations_period: Option<i64>,
    redirections_amount: Option<i64>,
    redirections_period: Option<i64>,
    created_at: Option<i64>,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
    parent: Option<String>,
    bucket: Option<i64>,
}

impl KeyRow {
    fn into_key(self, op: &'static str) -> PortResult<ApiKey> {
        self.read().ok_or_else(|| corrupt(op, "an API key"))
    }

    fn read(self) -> Option<ApiKey> {
        let number = |number: i64| u32::try_from(number).ok().map(ApiKeyNumber);
        Some(ApiKey {
            number: number(self.number?)?,
            prefix: self.prefix?.into(),
            secret_hash: self.secret_hash?.try_into().ok()?,
            user: OwnerId(self.user?.cast_unsigned()),
            name: self.name?.into(),
            scopes: Scopes::from_stored(self.scopes?.cast_unsigned())?,
            allowance: Allowance {
                creations: rule_of(self.creations_amount, self.creations_period),
                redirections: rule_of(self.redirections_amount, self.redirections_period),
            },
            created_at: UnixMillis(self.created_at?),
            expires_at: self.expires_at.map(UnixMillis),
            parent: self.parent.map(Into::into),
            bucket: number(self.bucket?)?,
            revoked_at: self.revoked_at.map(UnixMillis),
            last_used_at: None,
        })
    }
}

#[async_trait]
impl ApiKeyRows for CassandraAccounts {
    async fn get_key(&self, op: &'static str, prefix: &str) -> PortResult<Option<ApiKey>> {
        let values = (&*self.namespace, prefix);
        let row: Option<KeyRow> = self.engine.first(op, GET, values).await?;
        row.map(|row| row.into_key(op)).transpose()
    }

    async fn get_keys(&self, op: &'static str, mode: ReadMode) -> PortResult<LoadedKeys> {
        let values = (&*self.namespace,);
        let rows: Vec<KeyRow> = self.engine.rows(op, GET_ALL.at(mode), values).await?;
        let version = rows.first().and_then(|row| row.version);
        let keys = rows.into_iter().filter(|row| row.prefix.is_some());
        let keys: PortResult<Vec<ApiKey>> = keys.map(|row| row.into_key(op)).collect();
        Ok(LoadedKeys {
            version,
            keys: keys?,
        })
    }

    async fn put_keys(
        &self,
        op: &'static str,
        seen: Option<i64>,
        keys: &[ApiKey],
    ) -> PortResult<Decided> {
        let values = vec![
            Some(CqlValue::BigInt(seen.unwrap_or(0) + 1)),
            Some(CqlValue::Text((&*self.namespace).into())),
            seen.map(CqlValue::BigInt),
        ];
        let puts = keys.iter().map(|key| (PUT, self.put_values(key)));
        let statements = std::iter::once((VERSION, values)).chain(puts);
        self.engine.decide_all(op, statements.collect()).await
    }

    async fn get_uses(
        &self,
        op: &'static str,
        prefixes: &[&str],
    ) -> PortResult<Vec<Option<UnixMillis>>> {
        let reads = prefixes.iter().map(|prefix| async move {
            let values = (&*self.namespace, *prefix);
            let used: Option<(i64,)> = self.engine.first(op, GET_USE, values).await?;
            Ok(used.map(|(at,)| UnixMillis(at)))
        });
        together(reads).await
    }

    /// The engine keeps what has the latest timestamp.
    async fn put_use(&self, op: &'static str, prefix: &str, at: UnixMillis) -> PortResult<()> {
        let timestamp = at.0.saturating_mul(1_000);
        let values = (&*self.namespace, prefix, at.0, timestamp);
        let put = self.engine.write(op, Effect::Unknown, PUT_USE, values);
        put.await
    }
}

impl CassandraAccounts {
    fn put_values(&self, key: &ApiKey) -> Vec<Option<CqlValue>> {
        let number = |number: ApiKeyNumber| Some(CqlValue::BigInt(number.0.into()));
        let text = |text: &str| Some(CqlValue::Text(text.into()));
        let maybe = |value: Option<i64>| value.map(CqlValue::BigInt);
        let (creations_amount, creations_period) = rule_columns(key.allowance.creations);
        let (redirections_amount, redirections_period) = rule_columns(key.allowance.redirections);
        vec![
            number(key.number),
            Some(CqlValue::Blob(key.secret_hash.to_vec())),
            Some(CqlValue::BigInt(key.user.0.cast_signed())),
            text(&key.name),
            Some(CqlValue::TinyInt(key.scopes.stored().cast_signed())),
            maybe(creations_amount),
            maybe(creations_period),
            maybe(redirections_amount),
            maybe(redirections_period),
            Some(CqlValue::BigInt(key.created_at.0)),
            maybe(millis(key.expires_at)),
            maybe(millis(key.revoked_at)),
            key.parent.as_deref().and_then(text),
            number(key.bucket),
            text(&self.namespace),
            text(&key.prefix),
        ]
    }
}
