use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::LinkId;
use crate::owner::OwnerId;
use crate::ports::LinkChange;

/// Who may follow which private link, beside its owner.
///
/// A permission is for one generation of a link: when a key is given to a new owner, the permissions of the old one
/// count no more.
#[async_trait]
pub trait Permissions: Send + Sync {
    /// Lets `user` follow `link`, and returns the permission, the earlier one if there is one already.
    async fn grant(
        &self,
        user: OwnerId,
        link: &LinkId,
        generation: u32,
        now: UnixMillis,
    ) -> PortResult<Permission>;

    /// Removes the permission with that id if it is for `link`, and says whether this call did.
    async fn revoke(&self, id: PermissionId, link: &LinkId) -> PortResult<bool>;

    /// The permissions for that generation of `link`, oldest first, at most `limit`.
    async fn permissions(
        &self,
        link: &LinkId,
        generation: u32,
        limit: usize,
    ) -> PortResult<Vec<Permission>>;

    async fn may_follow(&self, user: OwnerId, link: &LinkId, generation: u32) -> PortResult<bool>;

    /// Removes the permissions for links whose keys were released, each of that generation and of those before it. Called
    /// twice: no change. Not called, because of a crash: they count no more, and only take room.
    async fn revoke_released(&self, released: &[LinkChange]) -> PortResult<()>;
}

/// Given by the store; grows, so that the id of a permission that is gone never names another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermissionId(pub u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permission {
    pub id: PermissionId,
    pub user: OwnerId,
    pub link: LinkId,
    pub generation: u32,
    pub granted_at: UnixMillis,
}
