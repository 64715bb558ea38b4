use async_trait::async_trait;
use curt_core::ports::{LinkChange, Permission, PermissionId, Permissions};
use curt_core::{Clock, DomainId, Key, LinkId, OwnerId, PortResult, SystemClock, UnixMillis};

use super::WideAccounts;
use crate::wide_column::ordered::{ListPlace, Span};
use crate::wide_column::{Decided, ReadMode, ScanPart, pause, together};

const ENTRIES_AT_ONCE: usize = 200;

/// Permissions as an engine keeps them: those of a link together.
#[async_trait]
pub trait PermissionRows: Send + Sync {
    async fn get_permissions(
        &self,
        op: &'static str,
        link: &LinkId,
        mode: ReadMode,
    ) -> PortResult<LinkPermissions>;

    /// Whether the user has a permission that was not revoked.
    async fn has_permission(
        &self,
        op: &'static str,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
    ) -> PortResult<bool>;

    /// Stores a permission, if the number that was given last to one of its link is `seen`.
    async fn insert_permission(
        &self,
        op: &'static str,
        permission: &Permission,
        seen: Option<i64>,
    ) -> PortResult<Decided>;

    /// Revokes a permission that was not.
    async fn revoke_permission(
        &self,
        op: &'static str,
        permission: &Permission,
    ) -> PortResult<Decided>;

    /// Some links behind `after` that have or had permissions, each once.
    async fn scan_permissions(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<LinkId>>;
}

/// What a link has.
#[derive(Clone, Debug, Default)]
pub struct LinkPermissions {
    /// The number that was given last.
    pub last_id: Option<i64>,
    /// Those that were not revoked.
    pub permissions: Vec<Permission>,
}

#[async_trait]
impl Permissions for WideAccounts {
    async fn grant(
        &self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
        now: UnixMillis,
    ) -> PortResult<Permission> {
        const OP: &str = "grant a permission";
        let permission = Permission {
            id: PermissionId(0),
            user,
            link: link.clone(),
            generation,
            granted_at: now,
        };
        self.deadlines
            .change(OP, self.try_grant(OP, permission))
            .await
    }

    async fn revoke(&self, id: PermissionId, link: &LinkId) -> PortResult<bool> {
        const OP: &str = "revoke a permission";
        let revoke = async {
            let found = self
                .rows
                .get_permissions(OP, link, ReadMode::Decided)
                .await?;
            let mut all = found.permissions.into_iter();
            match all.find(|permission| permission.id == id) {
                Some(permission) => self.revoke_one(OP, &permission).await,
                None => Ok(false),
            }
        };
        self.deadlines.change(OP, revoke).await
    }

    async fn permissions(
        &self,
        link: &LinkId,
        generation: u32,
        limit: usize,
    ) -> PortResult<Vec<Permission>> {
        const OP: &str = "list permissions";
        let found = self.rows.get_permissions(OP, link, ReadMode::Acknowledged);
        let mut found = self.deadlines.list(OP, found).await?.permissions;
        found.retain(|permission| permission.generation == generation);
        found.sort_unstable_by_key(|permission| permission.id);
        found.truncate(limit);
        Ok(found)
    }

    async fn may_follow(&self, user: OwnerId, link: &LinkId, generation: u32) -> PortResult<bool> {
        const OP: &str = "look up a permission";
        let found = self.rows.has_permission(OP, user, link, generation);
        self.deadlines.look_up(OP, found).await
    }

    async fn revoke_released(&self, released: &[LinkChange]) -> PortResult<()> {
        const OP: &str = "revoke permissions of released links";
        let revoke = together(released.iter().map(|change| async move {
            let found = self
                .rows
                .get_permissions(OP, &change.id, ReadMode::Decided)
                .await?;
            let old = found.permissions.into_iter();
            let old = old.filter(|one| one.generation <= change.revision.generation);
            for permission in old {
                self.revoke_one(OP, &permission).await?;
            }
            Ok(())
        }));
        self.deadlines.change_much(OP, revoke).await.map(drop)
    }
}

impl WideAccounts {
    /// Gives the permission the next number of its link, in one transaction with the row, or finds the earlier one.
    async fn try_grant(&self, op: &'static str, wish: Permission) -> PortResult<Permission> {
        let _turn = self.permission_turn.lock().await;
        let place = user_place(&wish);
        self.lists.add(op, [place]).await?;
        loop {
            let found = self
                .rows
                .get_permissions(op, &wish.link, ReadMode::Decided)
                .await?;
            let is_same =
                |one: &&Permission| one.user == wish.user && one.generation == wish.generation;
            // Also one that a lost answer of ours was about.
            if let Some(earlier) = found.permissions.iter().find(is_same) {
                return Ok(earlier.clone());
            }
            let now = SystemClock.now().0.saturating_mul(1_000);
            let id = now.max(found.last_id.unwrap_or(0) + 1);
            let granted = Permission {
                id: PermissionId(id.cast_unsigned()),
                ..wish.clone()
            };
            let decided = self.rows.insert_permission(op, &granted, found.last_id);
            if let Decided::Applied = decided.await? {
                return Ok(granted);
            }
            pause().await;
        }
    }

    async fn revoke_one(&self, op: &'static str, permission: &Permission) -> PortResult<bool> {
        let revoked = self.rows.revoke_permission(op, permission).await?;
        revoked.into_result()
    }

    /// Revokes everything that the user was permitted.
    pub(super) async fn revoke_permissions_of(
        &self,
        op: &'static str,
        user: OwnerId,
    ) -> PortResult<()> {
        let mut span = Span::all(&user_list(user), true);
        loop {
            let entries = self.lists.read(op, &span, ENTRIES_AT_ONCE).await?;
            for entry in &entries.entries {
                span.follow(&entry.place);
                let Some(link) = link_at(&entry.place.position) else {
                    continue;
                };
                let found = self
                    .rows
                    .get_permissions(op, &link, ReadMode::Decided)
                    .await?;
                for permission in found.permissions.iter().filter(|one| one.user == user) {
                    self.revoke_one(op, permission).await?;
                }
            }
            if entries.is_all {
                return Ok(());
            }
        }
    }
}

fn user_list(user: OwnerId) -> String {
    format!("permissions/user/{user}")
}

/// In the list of its user.
fn user_place(permission: &Permission) -> ListPlace {
    let link = &permission.link;
    ListPlace {
        list: user_list(permission.user),
        bucket: vec![0],
        position: [&link.domain.0.to_be_bytes()[..], link.key.as_bytes()].concat(),
    }
}

fn link_at(position: &[u8]) -> Option<LinkId> {
    let (domain, key) = position.split_first_chunk::<4>()?;
    let key = Key::parse(str::from_utf8(key).ok()?).ok()?;
    Some(LinkId::new(DomainId(u32::from_be_bytes(*domain)), key))
}
