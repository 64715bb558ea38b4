//! `Accounts` in memory, a file for each part of the port.

mod api_keys;
mod audit;
mod invites;
mod permissions;
mod sessions;
mod users;

use std::sync::Mutex;

use self::api_keys::ApiKeyTable;
use self::audit::AuditTable;
use self::invites::InviteTable;
use self::permissions::PermissionTable;
use self::sessions::SessionTable;
use self::users::UserTable;

#[derive(Debug, Default)]
pub struct MemoryAccounts {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    users: UserTable,
    api_keys: ApiKeyTable,
    sessions: SessionTable,
    invites: InviteTable,
    permissions: PermissionTable,
    audit: AuditTable,
}

impl MemoryAccounts {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
