use async_trait::async_trait;

use crate::account::User;
use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::owner::OwnerId;

#[async_trait]
pub trait Users: Send + Sync {
    /// Adds a user if neither id nor email is taken, and says whether it did. Called twice: the second is refused.
    async fn add_user(&self, user: &User) -> PortResult<bool>;

    /// Absent: `None`.
    async fn user(&self, id: OwnerId) -> PortResult<Option<User>>;

    /// The user with that email, compared exactly: the caller folds the case. Absent: `None`.
    async fn user_by_email(&self, email: &str) -> PortResult<Option<User>>;

    /// Up to `limit` users with an id above `after`, in the order of their ids, which is the order of their age.
    async fn users(&self, after: Option<OwnerId>, limit: usize) -> PortResult<Vec<User>>;

    /// Replaces everything but id and creation time, if the stored `updated_at` is still `seen`. Called twice with the
    /// same `seen`: the second is [`UserChange::Stale`], because `user.updated_at` must be later than `seen`. A stale
    /// change of a taken email is stale.
    async fn update_user(&self, user: &User, seen: UnixMillis) -> PortResult<UserChange>;

    /// Removes the user with their sessions and permissions, in one step. Their API keys stay, because links remember them
    /// by number. An administrator stays while there is no other one who is not disabled: of two who remove each other at
    /// once, one stays. Called twice: the second is [`UserRemoval::Absent`].
    async fn remove_user(&self, id: OwnerId) -> PortResult<UserRemoval>;

    /// Whether any user, disabled ones too, has a password: from then on the server is not open to be taken over.
    async fn anybody_can_sign_in(&self) -> PortResult<bool>;

    /// The users who are disabled, in the order of their ids.
    async fn disabled_users(&self) -> PortResult<Vec<OwnerId>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserRemoval {
    Removed,
    /// There is no other administrator who is not disabled. Nothing was changed.
    LastAdmin,
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    Changed,
    /// Somebody changed the user in between.
    Stale,
    /// Another user has that email.
    EmailTaken,
    Absent,
}
