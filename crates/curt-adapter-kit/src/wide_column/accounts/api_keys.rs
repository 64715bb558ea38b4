use std::collections::HashMap;

use async_trait::async_trait;
use curt_core::account::ApiKeyNumber;
use curt_core::ports::{ApiKey, ApiKeys, KeysToRevoke, NewApiKey, RedirectionLimits};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::WideAccounts;
use crate::ApiKeyTable;
use crate::wide_column::{Decided, Doubt, ReadMode, pause, together};

/// API keys as an engine keeps them: all of an installation together.
#[async_trait]
pub trait ApiKeyRows: Send + Sync {
    async fn get_key(&self, op: &'static str, prefix: &str) -> PortResult<Option<ApiKey>>;

    /// All keys and their version, of which the keys are not older.
    async fn get_keys(&self, op: &'static str, mode: ReadMode) -> PortResult<LoadedKeys>;

    /// Stores keys and the next version, if that is `seen`.
    async fn put_keys(
        &self,
        op: &'static str,
        seen: Option<i64>,
        keys: &[ApiKey],
    ) -> PortResult<Decided>;

    /// When the keys with these prefixes were last used.
    async fn get_uses(
        &self,
        op: &'static str,
        prefixes: &[&str],
    ) -> PortResult<Vec<Option<UnixMillis>>>;

    /// Stores a use. The latest stays.
    async fn put_use(&self, op: &'static str, prefix: &str, at: UnixMillis) -> PortResult<()>;
}

/// All keys, without their uses, as they were at a version.
#[derive(Clone, Debug, Default)]
pub struct LoadedKeys {
    pub version: Option<i64>,
    pub keys: Vec<ApiKey>,
}

/// All keys, as they were at a version.
struct Loaded {
    version: Option<i64>,
    table: ApiKeyTable,
}

#[async_trait]
impl ApiKeys for WideAccounts {
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
            let Some(key) = self.rows.get_key(OP, prefix).await? else {
                return Ok(None);
            };
            Ok(self.with_uses(OP, vec![key]).await?.pop())
        };
        self.deadlines.look_up(OP, found).await
    }

    async fn api_keys(&self, user: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        const OP: &str = "list API keys";
        let found = async {
            let loaded = self.load_keys(OP, ReadMode::Acknowledged).await?;
            let is_meant = |key: &&ApiKey| user.is_none_or(|user| key.user == user);
            let keys = loaded.table.keys().iter().filter(is_meant).cloned();
            self.with_uses(OP, keys.collect()).await
        };
        self.deadlines.list(OP, found).await
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
            match self.rows.get_key(OP, prefix).await? {
                Some(_) => self.rows.put_use(OP, prefix, at).await,
                None => Ok(()),
            }
        }));
        self.deadlines.change_much(OP, touch).await.map(drop)
    }

    async fn redirection_limits(&self) -> PortResult<RedirectionLimits> {
        const OP: &str = "read limits on redirections";
        let found = async {
            let loaded = self.load_keys(OP, ReadMode::Acknowledged).await?;
            let limit = |key: &ApiKey| Some((key.number, key.allowance.redirections?));
            Ok(RedirectionLimits {
                users: self.redirection_limits_of_users(OP).await?,
                keys: loaded.table.keys().iter().filter_map(limit).collect(),
            })
        };
        self.deadlines.list(OP, found).await
    }
}

impl WideAccounts {
    async fn load_keys(&self, op: &'static str, mode: ReadMode) -> PortResult<Loaded> {
        let LoadedKeys { version, keys } = self.rows.get_keys(op, mode).await?;
        Ok(Loaded {
            version,
            table: ApiKeyTable::new(self.deadlines.backend, keys),
        })
    }

    async fn with_uses(&self, op: &'static str, keys: Vec<ApiKey>) -> PortResult<Vec<ApiKey>> {
        let prefixes: Vec<&str> = keys.iter().map(|key| &*key.prefix).collect();
        let uses = self.rows.get_uses(op, &prefixes).await?;
        let keys = keys.into_iter().zip(uses);
        let used = |(key, last_used_at)| ApiKey {
            last_used_at,
            ..key
        };
        Ok(keys.map(used).collect())
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
                let loaded = doubt.keep(self.load_keys(op, ReadMode::Decided).await)?;
                if let Some(error) = doubt.take() {
                    return is_done(&loaded.table).ok_or(error);
                }
                let mut after = loaded.table.clone();
                let outcome = change(&mut after)?;
                let changed = changed_keys(&loaded.table, &after);
                if changed.is_empty() {
                    return Ok(outcome);
                }
                match self.rows.put_keys(op, loaded.version, &changed).await? {
                    Decided::Applied => return Ok(outcome),
                    Decided::Refused => {}
                    Decided::Unknown(error) => doubt.note(error),
                }
                pause().await;
            }
        };
        self.deadlines.change(op, call).await
    }
}

/// Those that are not as they were.
fn changed_keys(before: &ApiKeyTable, after: &ApiKeyTable) -> Vec<ApiKey> {
    let is_changed = |key: &&ApiKey| before.find(&key.prefix) != Some(key);
    after.keys().iter().filter(is_changed).cloned().collect()
}
