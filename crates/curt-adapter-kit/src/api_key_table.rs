use std::collections::{BTreeSet, HashMap};

use curt_core::account::ApiKeyNumber;
use curt_core::ports::{ApiKey, KeysToRevoke, NewApiKey};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};

/// All API keys of an installation, and the rules by which they change together: for engines that hold them whole. Keys are
/// never removed, and stand in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct ApiKeyTable {
    backend: &'static str,
    keys: Vec<ApiKey>,
    by_prefix: HashMap<Box<str>, usize>,
    by_user: HashMap<OwnerId, Vec<usize>>,
}

impl ApiKeyTable {
    /// The keys of the engine `backend`, in any order.
    #[must_use]
    pub fn new(backend: &'static str, mut keys: Vec<ApiKey>) -> Self {
        keys.sort_unstable_by_key(|key| key.number);
        let mut table = Self {
            backend,
            ..Self::default()
        };
        keys.into_iter().for_each(|key| table.place(key));
        table
    }

    /// By number.
    #[must_use]
    pub fn keys(&self) -> &[ApiKey] {
        &self.keys
    }

    #[must_use]
    pub fn find(&self, prefix: &str) -> Option<&ApiKey> {
        self.by_prefix.get(prefix).map(|place| &self.keys[*place])
    }

    fn find_mut(&mut self, prefix: &str) -> Option<&mut ApiKey> {
        let place = self.by_prefix.get(prefix)?;
        Some(&mut self.keys[*place])
    }

    pub fn of_user(&self, user: OwnerId) -> impl Iterator<Item = &ApiKey> {
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

    /// As [`ApiKeys::revoke_api_keys`](curt_core::ports::ApiKeys::revoke_api_keys).
    pub fn revoke(&mut self, which: KeysToRevoke<'_>, at: UnixMillis) -> Vec<Box<str>> {
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
        let last = self.keys.last().map_or(0, |key| key.number.0);
        let number = last.checked_add(1).ok_or_else(|| {
            let detail = "there are no more numbers for API keys";
            PortError::new(ErrorKind::Invalid, self.backend, "add an API key", detail)
        })?;
        let number = ApiKeyNumber(number);
        self.place(key.numbered(number));
        Ok(number)
    }

    fn place(&mut self, key: ApiKey) {
        let place = self.keys.len();
        self.by_prefix.insert(key.prefix.clone(), place);
        self.by_user.entry(key.user).or_default().push(place);
        self.keys.push(key);
    }

    /// Stores the key as it is, with its number, in place of the one with that prefix, and says whether it did: not where
    /// another key has the number, or the prefix has another number. When it was used last stays.
    pub fn put(&mut self, key: &ApiKey) -> bool {
        let is_other =
            |other: &ApiKey| (other.number == key.number) != (other.prefix == key.prefix);
        if self.keys.iter().any(is_other) {
            return false;
        }
        let last_used_at = self.find(&key.prefix).and_then(|old| old.last_used_at);
        let mut keys: Vec<ApiKey> = self.keys.clone();
        keys.retain(|old| old.prefix != key.prefix);
        keys.push(ApiKey {
            last_used_at,
            ..key.clone()
        });
        *self = Self::new(self.backend, keys);
        true
    }

    /// As [`ApiKeys::add_api_key`](curt_core::ports::ApiKeys::add_api_key).
    pub fn add(&mut self, key: &NewApiKey) -> PortResult<Option<ApiKeyNumber>> {
        let Some(key) = self.below_parent(key).filter(|key| self.is_free(key, None)) else {
            return Ok(None);
        };
        self.push(&key).map(Some)
    }

    /// As [`ApiKeys::rotate_api_key`](curt_core::ports::ApiKeys::rotate_api_key).
    pub fn rotate(
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

    /// Notes when a key was last used. A time older than the noted one, or an unknown prefix, changes nothing.
    pub fn touch(&mut self, prefix: &str, at: UnixMillis) {
        if let Some(key) = self.find_mut(prefix) {
            // Never used is older than any time.
            key.last_used_at = key.last_used_at.max(Some(at));
        }
    }
}
