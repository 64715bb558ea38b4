use std::sync::Arc;

use curt_core::limits::PERMISSIONS_PER_LINK_MAX;
use curt_core::names::audit;
use curt_core::ports::{Accounts, Permission, PermissionId};
use curt_core::{Clock, LinkId, OwnerId, PortResult, User};

use crate::audit::{Audit, Origin};
use crate::error::AccountError;
use crate::ttl_cache::TtlCache;
use crate::users::{UserRef, find};

/// Who may follow which private link, beside its owner.
pub struct Permissions {
    accounts: Arc<dyn Accounts>,
    clock: Arc<dyn Clock>,
    audit: Arc<Audit>,
    ttl_cache: TtlCache<(OwnerId, LinkId, u32), bool>,
}

/// A permission and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    pub permission: Permission,
    pub user: User,
}

impl Permissions {
    pub(crate) fn new(
        accounts: Arc<dyn Accounts>,
        clock: Arc<dyn Clock>,
        audit: Arc<Audit>,
    ) -> Arc<Self> {
        Arc::new(Self {
            accounts,
            clock,
            audit,
            ttl_cache: TtlCache::new(),
        })
    }

    /// Lets somebody follow that generation of `link`. Granted before: the earlier permission.
    pub async fn grant(
        &self,
        link: &LinkId,
        generation: u32,
        whom: UserRef<'_>,
        origin: Origin,
    ) -> Result<Granted, AccountError> {
        let user = find(&*self.accounts, whom).await?;
        let user = user.ok_or(AccountError::NotFound)?;
        let held = self
            .accounts
            .permissions(link, generation, PERMISSIONS_PER_LINK_MAX)
            .await?;
        let is_new = held.iter().all(|permission| permission.user != user.id);
        if is_new && held.len() >= PERMISSIONS_PER_LINK_MAX {
            return Err(AccountError::TooMany);
        }
        let now = self.clock.now();
        let permission = self.accounts.grant(user.id, link, generation, now).await?;
        self.ttl_cache.invalidate_all();
        let subject = format!("{} {}", link.key, user.email);
        self.audit
            .record(origin, audit::PERMISSION_GRANTED, &subject)
            .await;
        Ok(Granted { permission, user })
    }

    /// Takes a permission for `link` back. On this instance at once, on the others within
    /// [`CREDENTIAL_TTL`](crate::CREDENTIAL_TTL).
    pub async fn revoke(
        &self,
        link: &LinkId,
        id: PermissionId,
        origin: Origin,
    ) -> Result<(), AccountError> {
        let revoked = self.accounts.revoke(id, link).await?;
        self.ttl_cache.invalidate_all();
        if !revoked {
            return Err(AccountError::NotFound);
        }
        let subject = format!("{} {}", link.key, id.0);
        self.audit
            .record(origin, audit::PERMISSION_REVOKED, &subject)
            .await;
        Ok(())
    }

    /// Everybody who may follow that generation of `link`, oldest permission first.
    pub async fn list(&self, link: &LinkId, generation: u32) -> PortResult<Vec<Granted>> {
        let held = self
            .accounts
            .permissions(link, generation, PERMISSIONS_PER_LINK_MAX)
            .await?;
        let mut granted = Vec::with_capacity(held.len());
        for permission in held {
            if let Some(user) = self.accounts.user(permission.user).await? {
                granted.push(Granted { permission, user });
            }
        }
        Ok(granted)
    }

    /// Whether somebody was given the permission. Answers from memory for up to
    /// [`CREDENTIAL_TTL`](crate::CREDENTIAL_TTL).
    pub async fn may_follow(
        &self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
    ) -> PortResult<bool> {
        let now = self.clock.now();
        let name = (user, link.clone(), generation);
        if let Some(verdict) = self.ttl_cache.get(&name, now) {
            return Ok(verdict);
        }
        let begun = self.ttl_cache.begin_read();
        let verdict = self.accounts.may_follow(user, link, generation).await?;
        self.ttl_cache.put(name, verdict, now, begun);
        Ok(verdict)
    }
}
