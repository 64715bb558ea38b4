use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use curt_core::account::ApiKeyNumber;
use curt_core::ports::{ApiKey, ApiKeys, KeysToRevoke, NewApiKey, RedirectionLimits};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};

use super::MemoryAccounts;
use crate::{BACKEND, locked};

/// Keys are never removed, so that a key's place in the list says its number.
#[derive(Debug, Default)]
pub(super) struct ApiKeyTable {
    keys: Vec<ApiKey>,
    by_prefix: HashMap<Box<str>, usize>,
    by_user: HashMap<OwnerId, Vec<usize>>,
}

impl ApiKeyTable {
    fn find(&self, prefix: &str) -> Option<&ApiKey> {
        self.by_prefix.get(prefix).map(|place| &self.keys[*place])
    }

    fn find_mut(&mut self, prefix: &str) -> Option<&mut ApiKey> {
        let place = self.by_prefix.get(prefix)?;
        Some(&mut self.keys[*place])
    }

    fn of_user(&self, user: OwnerId) -> impl Iterator<Item = &ApiKey> {
        let places = self.by_user.get(&user).into_iter().flatten();
        places.map(|place| &self.keys[*place])
    }

    /// Whether neither the prefix nor the name of the key is taken; the name of `replaced` is free.
    fn is_free(&self, key: &NewApiKey, replaced: Option<&str>) -> bool {
        let has_name = |other: &ApiKey| {
            other.name == key.name
                && other.is_in_force(key.created_at)
                && replaced != Some(&*other.prefix)
        };
        self.find(&key.prefix).is_none() && !self.of_user(key.user).any(has_name)
    }

    /// The key, which ends with its parent at the latest. `None`: the parent is not in force.
    fn below_parent(&self, key: &NewApiKey) -> Option<NewApiKey> {
        let Some(parent) = key.parent.as_deref() else {
            return Some(key.clone());
        };
        let parent = self.find(parent)?;
        let ends = [key.expires_at, parent.ends_at()];
        parent.is_in_force(key.created_at).then(|| NewApiKey {
            expires_at: ends.into_iter().flatten().min(),
            ..key.clone()
        })
    }

    /// The prefixes of the keys and of all that descend from them.
    fn family(&self, which: KeysToRevoke<'_>) -> BTreeSet<Box<str>> {
        let is_named = |key: &ApiKey| match which {
            KeysToRevoke::Prefix(prefix) => &*key.prefix == prefix,
            KeysToRevoke::User(user) => key.user == user,
        };
        let mut family = BTreeSet::new();
        // A parent is older than its children, and so comes before them.
        for key in &self.keys {
            let descends = |parent: &str| family.contains(parent);
            if is_named(key) || key.parent.as_deref().is_some_and(descends) {
                family.insert(key.prefix.clone());
            }
        }
        family
    }

    fn revoke(&mut self, which: KeysToRevoke<'_>, at: UnixMillis) -> Vec<Box<str>> {
        let mut ended = Vec::new();
        for prefix in self.family(which) {
            let ends_later = |key: &&mut ApiKey| key.revoked_at.is_none_or(|end| end > at);
            if let Some(key) = self.find_mut(&prefix).filter(ends_later) {
                key.revoked_at = Some(at);
                ended.push(prefix);
            }
        }
        ended
    }

    fn push(&mut self, key: &NewApiKey) -> PortResult<ApiKeyNumber> {
        let place = self.keys.len();
        let number = u32::try_from(place + 1).map_err(|error| {
            PortError::new(
                ErrorKind::Invalid,
                BACKEND,
                "add an API key",
                "there are no more numbers for API keys",
            )
            .with_source(error)
        })?;
        let number = ApiKeyNumber(number);
        self.keys.push(key.numbered(number));
        self.by_prefix.insert(key.prefix.clone(), place);
        self.by_user.entry(key.user).or_default().push(place);
        Ok(number)
    }

    fn add(&mut self, key: &NewApiKey) -> PortResult<Option<ApiKeyNumber>> {
        let Some(key) = self.below_parent(key).filter(|key| self.is_free(key, None)) else {
            return Ok(None);
        };
        self.push(&key).map(Some)
    }

    fn rotate(
        &mut self,
        prefix: &str,
        retired_name: &str,
        ends_at: UnixMillis,
        successor: &NewApiKey,
    ) -> PortResult<Option<ApiKeyNumber>> {
        let replaceable = |key: &&ApiKey| key.revoked_at.is_none() && key.user == successor.user;
        let Some(old) = self.find(prefix).filter(replaceable) else {
            return Ok(None);
        };
        let keeps_parent = old.parent == successor.parent;
        let successor = NewApiKey {
            name: old.name.clone(),
            ..successor.clone()
        };
        let successor = match keeps_parent {
            true => Some(successor),
            false => self.below_parent(&successor),
        };
        let is_free = |key: &NewApiKey| self.is_free(key, Some(prefix));
        let Some(successor) = successor.filter(is_free) else {
            return Ok(None);
        };
        let number = self.push(&successor)?;
        if let Some(old) = self.find_mut(prefix) {
            old.name = retired_name.into();
            old.revoked_at = Some(ends_at);
        }
        Ok(Some(number))
    }
}

#[async_trait]
impl ApiKeys for MemoryAccounts {
    async fn add_api_key(&self, key: &NewApiKey) -> PortResult<Option<ApiKeyNumber>> {
        locked(&self.tables).api_keys.add(key)
    }

    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>> {
        Ok(locked(&self.tables).api_keys.find(prefix).cloned())
    }

    async fn api_keys(&self, user: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        let api_keys = &locked(&self.tables).api_keys;
        Ok(match user {
            Some(user) => api_keys.of_user(user).cloned().collect(),
            None => api_keys.keys.clone(),
        })
    }

    async fn revoke_api_keys(
        &self,
        which: KeysToRevoke<'_>,
        at: UnixMillis,
    ) -> PortResult<Vec<Box<str>>> {
        Ok(locked(&self.tables).api_keys.revoke(which, at))
    }

    async fn rotate_api_key(
        &self,
        prefix: &str,
        retired_name: &str,
        ends_at: UnixMillis,
        successor: &NewApiKey,
    ) -> PortResult<Option<ApiKeyNumber>> {
        let api_keys = &mut locked(&self.tables).api_keys;
        api_keys.rotate(prefix, retired_name, ends_at, successor)
    }

    async fn touch_api_keys(&self, used: &[(Box<str>, UnixMillis)]) -> PortResult<()> {
        let api_keys = &mut locked(&self.tables).api_keys;
        for (prefix, at) in used {
            if let Some(key) = api_keys.find_mut(prefix) {
                // Never used is older than any time.
                key.last_used_at = key.last_used_at.max(Some(*at));
            }
        }
        Ok(())
    }

    async fn redirection_limits(&self) -> PortResult<RedirectionLimits> {
        let tables = locked(&self.tables);
        let keys = tables.api_keys.keys.iter();
        let limit = |key: &ApiKey| Some((key.number, key.allowance.redirections?));
        Ok(RedirectionLimits {
            users: tables.users.redirection_limits(),
            keys: keys.filter_map(limit).collect(),
        })
    }
}
