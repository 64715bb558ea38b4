//! Accounts, a file for each part of the port.
//!
//! Users, sessions, invitations and audit entries are rows of their own; permissions lie together per link, and the API
//! keys of an installation in one partition, because what may be done to one depends on others. Each is changed by
//! conditional writes. Nothing that was revoked, ended or removed is deleted: it has a state, so that a replica that
//! missed the change cannot bring it back.

mod api_keys;
mod audit;
mod copies;
mod invites;
mod permissions;
mod removal;
mod sessions;
mod users;

use std::sync::Arc;

use curt_core::OwnerId;
use tokio::sync::Mutex;

use super::Deadlines;
use super::ordered::{ListPlace, ListRows, OrderedLists, Span};

pub use api_keys::{ApiKeyRows, LoadedKeys};
pub use audit::AuditRows;
pub use invites::{InviteRows, StoredInvite};
pub use permissions::{LinkPermissions, PermissionRows};
pub use sessions::{SessionRows, StoredSession};
pub use users::{PendingRemoval, StoredUser, UserRows};

/// All that an engine keeps of accounts.
pub trait AccountRows:
    ApiKeyRows + AuditRows + InviteRows + PermissionRows + SessionRows + UserRows
{
}

impl<T> AccountRows for T where
    T: ApiKeyRows + AuditRows + InviteRows + PermissionRows + SessionRows + UserRows
{
}

/// Accounts.
pub struct WideAccounts {
    rows: Arc<dyn AccountRows>,
    lists: OrderedLists,
    deadlines: Deadlines,
    /// Changes of users from one process wait for each other, and so do those of API keys: conditional writes of one
    /// partition hinder each other.
    user_turn: Mutex<()>,
    key_turn: Mutex<()>,
    permission_turn: Mutex<()>,
    last_number: Mutex<i64>,
}

impl WideAccounts {
    #[must_use]
    pub fn new(rows: Arc<dyn AccountRows>, lists: Arc<dyn ListRows>, deadlines: Deadlines) -> Self {
        Self {
            rows,
            lists: OrderedLists::new(lists),
            deadlines,
            user_turn: Mutex::default(),
            key_turn: Mutex::default(),
            permission_turn: Mutex::default(),
            last_number: Mutex::new(0),
        }
    }
}

/// The place of a user in a list by id.
fn user_place(list: &str, id: OwnerId) -> ListPlace {
    ListPlace {
        list: list.to_owned(),
        bucket: (id.0 >> 48).to_be_bytes().to_vec(),
        position: id.0.to_be_bytes().to_vec(),
    }
}

/// The part of such a list that follows a user.
fn users_after(list: &str, after: Option<OwnerId>) -> Span {
    let mut span = Span::all(list, true);
    if let Some(after) = after {
        span.follow(&user_place(list, after));
    }
    span
}

fn user_at(position: &[u8]) -> Option<OwnerId> {
    let bytes = position.try_into().ok()?;
    Some(OwnerId(u64::from_be_bytes(bytes)))
}
