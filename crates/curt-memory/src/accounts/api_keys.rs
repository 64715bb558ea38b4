use async_trait::async_trait;
use curt_core::account::ApiKeyNumber;
use curt_core::ports::{ApiKey, ApiKeys, KeysToRevoke, NewApiKey, RedirectionLimits};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::MemoryAccounts;
use crate::locked;

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
            None => api_keys.keys().to_vec(),
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
            api_keys.touch(prefix, *at);
        }
        Ok(())
    }

    async fn redirection_limits(&self) -> PortResult<RedirectionLimits> {
        let tables = locked(&self.tables);
        let keys = tables.api_keys.keys().iter();
        let limit = |key: &ApiKey| Some((key.number, key.allowance.redirections?));
        Ok(RedirectionLimits {
            users: tables.users.redirection_limits(),
            keys: keys.filter_map(limit).collect(),
        })
    }
}
