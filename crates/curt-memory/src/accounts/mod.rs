//! `Accounts` in memory, a file for each part of the port.

mod api_keys;
mod audit;
mod invites;
mod permissions;
mod sessions;
mod users;

use std::sync::Mutex;

use curt_adapter_kit::ApiKeyTable;

use self::audit::AuditTable;
use self::invites::InviteTable;
use self::permissions::PermissionTable;
use self::sessions::SessionTable;
use self::users::UserTable;
use crate::BACKEND;

#[derive(Debug, Default)]
pub struct MemoryAccounts {
    tables: Mutex<Tables>,
}

#[derive(Debug)]
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

impl Default for Tables {
    fn default() -> Self {
        Self {
            users: UserTable::default(),
            api_keys: ApiKeyTable::new(BACKEND, Vec::new()),
            sessions: SessionTable::default(),
            invites: InviteTable::default(),
            permissions: PermissionTable::default(),
            audit: AuditTable::default(),
        }
    }
}
