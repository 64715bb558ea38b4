use std::collections::HashMap;

use async_trait::async_trait;
use curt_adapter_kit::{ApiKeyTable, Effect};
use curt_core::account::{Allowance, ApiKeyNumber, Scopes};
use curt_core::ports::{ApiKey, ApiKeys, KeysToRevoke, NewApiKey, RedirectionLimits};
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;
use scylla::value::CqlValue;

use super::{CassandraAccounts, millis, rule_columns, rule_of};
use crate::failure::{BACKEND, corrupt};
use crate::pause::pause;
use crate::statement::{Cql, Decided, Doubt};
use crate::together::together;

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

/// All keys, as they were at a version.
struct Loaded {
    version: Option<i64>,
    table: ApiKeyTable,
}

#[async_trait]
impl ApiKeys for CassandraAccounts {
    async fn add_api_key(&self, key: &NewApiKey) -> PortResult<Option<ApiKeyNumber>> {
        const OP: &str = "add an API key";
        let add = |table: &mut ApiKeyTable| table.add(key);
        // A prefix is random, and is not tried twice: one that is there after a lost answer is this one.
        let is_done = |table: &ApiKeyTable| {
            let found = table.find(&key.prefix)?;
            (found.secret_hash == key.secret_hash).then_some(Some(found.number))
        };
        self.change_keys(OP, add, is_done).await
    }

    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>> {
        const OP: &str = "look up an API key";
        let found = async {
            let row: Option<KeyRow> = self
                .engine
                .first(OP, GET, (&*self.namespace, prefix))
                .await?;
            let Some(row) = row else {
                return Ok(None);
            };
            let key = row.into_key(OP)?;
            Ok(self.with_uses(OP, vec![key]).await?.pop())
        };
        self.engine.look_up(OP, found).await
    }

    async fn api_keys(&self, user: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        const OP: &str = "list API keys";
        let found = async {
            let loaded = self.load_keys(OP, GET_ALL).await?;
            let is_meant = |key: &&ApiKey| user.is_none_or(|user| key.user == user);
            let keys = loaded.table.keys().iter().filter(is_meant).cloned();
            self.with_uses(OP, keys.collect()).await
        };
        self.engine.list(OP, found).await
    }

    async fn revoke_api_keys(
        &self,
        which: KeysToRevoke<'_>,
        at: UnixMillis,
    ) -> PortResult<Vec<Box<str>>> {
        const OP: &str = "revoke API keys";
        let revoke = |table: &mut ApiKeyTable| Ok(table.revoke(which, at));
        self.change_keys(OP, revoke, |_| None).await
    }

    async fn rotate_api_key(
        &self,
        prefix: &str,
        retired_name: &str,
        ends_at: UnixMillis,
        successor: &NewApiKey,
    ) -> PortResult<Option<ApiKeyNumber>> {
        const OP: &str = "rotate an API key";
        let rotate =
            |table: &mut ApiKeyTable| table.rotate(prefix, retired_name, ends_at, successor);
        let is_done = |table: &ApiKeyTable| {
            let found = table.find(&successor.prefix)?;
            (found.secret_hash == successor.secret_hash).then_some(Some(found.number))
        };
        self.change_keys(OP, rotate, is_done).await
    }

    async fn touch_api_keys(&self, used: &[(Box<str>, UnixMillis)]) -> PortResult<()> {
        const OP: &str = "note the use of API keys";
        let mut latest: HashMap<&str, UnixMillis> = HashMap::new();
        for (prefix, at) in used {
            let noted = latest.entry(prefix).or_insert(*at);
            *noted = (*noted).max(*at);
        }
        let touch = together(latest.into_iter().map(|(prefix, at)| async move {
            let values = (&*self.namespace, prefix);
            let row: Option<KeyRow> = self.engine.first(OP, GET, values).await?;
            if row.is_none() {
                return Ok(());
            }
            // The engine keeps what has the latest timestamp.
            let timestamp = at.0.saturating_mul(1_000);
            let values = (&*self.namespace, prefix, at.0, timestamp);
            self.engine
                .write(OP, Effect::Unknown, PUT_USE, values)
                .await
        }));
        self.engine.change_much(OP, touch).await.map(drop)
    }

    async fn redirection_limits(&self) -> PortResult<RedirectionLimits> {
        const OP: &str = "read limits on redirections";
        let found = async {
            let loaded = self.load_keys(OP, GET_ALL).await?;
            let limit = |key: &ApiKey| Some((key.number, key.allowance.redirections?));
            Ok(RedirectionLimits {
                users: self.redirection_limits_of_users(OP).await?,
                keys: loaded.table.keys().iter().filter_map(limit).collect(),
            })
        };
        self.engine.list(OP, found).await
    }
}

impl CassandraAccounts {
    async fn load_keys(&self, op: &'static str, cql: Cql) -> PortResult<Loaded> {
        let rows: Vec<KeyRow> = self.engine.rows(op, cql, (&*self.namespace,)).await?;
        let version = rows.first().and_then(|row| row.version);
        let keys = rows.into_iter().filter(|row| row.prefix.is_some());
        let keys: PortResult<Vec<ApiKey>> = keys.map(|row| row.into_key(op)).collect();
        Ok(Loaded {
            version,
            table: ApiKeyTable::new(BACKEND, keys?),
        })
    }

    async fn with_uses(&self, op: &'static str, keys: Vec<ApiKey>) -> PortResult<Vec<ApiKey>> {
        together(keys.into_iter().map(|key| async move {
            let values = (&*self.namespace, &*key.prefix);
            let used: Option<(i64,)> = self.engine.first(op, GET_USE, values).await?;
            Ok(ApiKey {
                last_used_at: used.map(|(at,)| UnixMillis(at)),
                ..key
            })
        }))
        .await
    }

    /// Changes the keys as `change` says, all in one transaction, if no other change came in between; otherwise decides
    /// anew. `is_done` finds what a try whose answer was lost has done.
    pub(super) async fn change_keys<T>(
        &self,
        op: &'static str,
        change: impl Fn(&mut ApiKeyTable) -> PortResult<T>,
        is_done: impl Fn(&ApiKeyTable) -> Option<T>,
    ) -> PortResult<T> {
        let call = async {
            let _turn = self.key_turn.lock().await;
            let mut doubt = Doubt::default();
            loop {
                let loaded = doubt.keep(self.load_keys(op, GET_ALL.serial()).await)?;
                if doubt.is_there() {
                    return match is_done(&loaded.table) {
                        Some(done) => Ok(done),
                        None => Err(doubt.into_error().unwrap_or_else(|| corrupt(op, "doubt"))),
                    };
                }
                let mut after = loaded.table.clone();
                let outcome = change(&mut after)?;
                let statements = self.statements_of(&loaded, &after);
                if statements.is_empty() {
                    return Ok(outcome);
                }
                match self.engine.decide_all(op, statements).await? {
                    Decided::Applied => return Ok(outcome),
                    Decided::Refused => {}
                    Decided::Unknown(error) => doubt.note(error),
                }
                pause().await;
            }
        };
        self.engine.change(op, call).await
    }

    /// What turns the keys into what they are to be; nothing if that is the same.
    fn statements_of(
        &self,
        before: &Loaded,
        after: &ApiKeyTable,
    ) -> Vec<(Cql, Vec<Option<CqlValue>>)> {
        let is_changed = |key: &&ApiKey| before.table.find(&key.prefix) != Some(key);
        let changed = after.keys().iter().filter(is_changed);
        let puts: Vec<_> = changed.map(|key| (PUT, self.put_values(key))).collect();
        if puts.is_empty() {
            return puts;
        }
        let next = before.version.unwrap_or(0) + 1;
        let values = vec![
            Some(CqlValue::BigInt(next)),
            Some(CqlValue::Text((&*self.namespace).into())),
            before.version.map(CqlValue::BigInt),
        ];
        std::iter::once((VERSION, values)).chain(puts).collect()
    }

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
