use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::ports::{Accounts, ApiKey, Owner};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::locked;

#[derive(Debug, Default)]
pub struct MemoryAccounts {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    owners: Vec<Owner>,
    keys: Vec<ApiKey>,
}

impl MemoryAccounts {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Accounts for MemoryAccounts {
    async fn add_owner(&self, owner: &Owner) -> PortResult<bool> {
        let owners = &mut locked(&self.tables).owners;
        let taken = owners
            .iter()
            .any(|other| other.id == owner.id || other.name == owner.name);
        if !taken {
            owners.push(owner.clone());
            owners.sort_by_key(|owner| owner.created_at);
        }
        Ok(!taken)
    }

    async fn owner_by_name(&self, name: &str) -> PortResult<Option<Owner>> {
        let tables = locked(&self.tables);
        Ok(tables
            .owners
            .iter()
            .find(|owner| &*owner.name == name)
            .cloned())
    }

    async fn owners(&self) -> PortResult<Vec<Owner>> {
        Ok(locked(&self.tables).owners.clone())
    }

    async fn add_api_key(&self, key: &ApiKey) -> PortResult<bool> {
        let keys = &mut locked(&self.tables).keys;
        let taken = keys.iter().any(|other| {
            let same_name = other.owner == key.owner && other.name == key.name;
            other.prefix == key.prefix || (same_name && other.revoked_at.is_none())
        });
        if !taken {
            keys.push(key.clone());
            keys.sort_by_key(|key| key.created_at);
        }
        Ok(!taken)
    }

    async fn api_key(&self, prefix: &str) -> PortResult<Option<ApiKey>> {
        let tables = locked(&self.tables);
        Ok(tables
            .keys
            .iter()
            .find(|key| &*key.prefix == prefix)
            .cloned())
    }

    async fn api_keys(&self, owner: Option<OwnerId>) -> PortResult<Vec<ApiKey>> {
        let tables = locked(&self.tables);
        let wanted = |key: &&ApiKey| owner.is_none_or(|owner| key.owner == owner);
        Ok(tables.keys.iter().filter(wanted).cloned().collect())
    }

    async fn revoke_api_key(&self, prefix: &str, now: UnixMillis) -> PortResult<bool> {
        let keys = &mut locked(&self.tables).keys;
        let valid = |key: &&mut ApiKey| &*key.prefix == prefix && key.revoked_at.is_none();
        let found = keys.iter_mut().find(valid);
        Ok(found.map(|key| key.revoked_at = Some(now)).is_some())
    }
}
