//! A store that counts calls, fails on demand, and can pretend that what is added next is taken.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use curt_core::ports::{
    ApiKey, ApiKeys, AuditEntry, AuditLog, Invite, Invites, KeysToRevoke, LinkChange, NewApiKey,
    OpenInvites, Permission, PermissionId, Permissions, RedirectionLimits, Session, Sessions,
    UserChange, UserRemoval, Users,
};
use curt_core::{
    ApiKeyNumber, ErrorKind, LinkId, OwnerId, PortError, PortResult, UnixMillis, User,
};
use curt_memory::MemoryAccounts;

#[derive(Default)]
pub(crate) struct Probed {
    pub(crate) inner: MemoryAccounts,
    calls: Mutex<HashMap<&'static str, u64>>,
    failing: Mutex<HashSet<&'static str>>,
    refusals: AtomicU64,
}

impl Probed {
    pub(crate) fn calls(&self, method: &str) -> u64 {
        let calls = self.calls.lock().unwrap();
        calls.get(method).copied().unwrap_or(0)
    }

    pub(crate) fn fail(&self, method: &'static str) {
        self.failing.lock().unwrap().insert(method);
    }

    pub(crate) fn heal(&self) {
        self.failing.lock().unwrap().clear();
    }

    /// So many additions meet something taken.
    pub(crate) fn refuse(&self, additions: u64) {
        self.refusals.store(additions, Ordering::SeqCst);
    }

    fn meet(&self, method: &'static str) -> PortResult<()> {
        *self.calls.lock().unwrap().entry(method).or_default() += 1;
        if self.failing.lock().unwrap().contains(method) {
            let kind = ErrorKind::Unavailable;
            return Err(PortError::new(kind, "probed", "answer", "off"));
        }
        Ok(())
    }

    fn refuses(&self, method: &'static str) -> bool {
        method.starts_with("add_")
            && self
                .refusals
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
    }
}

macro_rules! forward {
    ($port:ident { $(fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $port for Probed {
            $(async fn $name(&self, $($argument: $kind),*) -> PortResult<$answer> {
                self.meet(stringify!($name))?;
                if self.refuses(stringify!($name)) {
                    return Ok(<$answer>::default());
                }
                self.inner.$name($($argument),*).await
            })*
        }
    };
}

/// What a port answers when it did not do as asked; [`forward`] wants one for every answer.
trait Refusal {
    fn default() -> Self;
}

macro_rules! refusals {
    ($($answer:ty),*) => {
        $(impl Refusal for $answer {
            fn default() -> Self {
                unreachable!("only additions are refused")
            }
        })*
    };
}

refusals!(UserChange, UserRemoval, Permission);

forward!(Users {
    fn add_user(user: &User) -> bool;
    fn user(id: OwnerId) -> Option<User>;
    fn user_by_email(email: &str) -> Option<User>;
    fn users(after: Option<OwnerId>, limit: usize) -> Vec<User>;
    fn update_user(user: &User, seen: UnixMillis) -> UserChange;
    fn remove_user(id: OwnerId) -> UserRemoval;
    fn anybody_can_sign_in() -> bool;
    fn disabled_users() -> Vec<OwnerId>;
});

forward!(ApiKeys {
    fn add_api_key(key: &NewApiKey) -> Option<ApiKeyNumber>;
    fn api_key(prefix: &str) -> Option<ApiKey>;
    fn api_keys(user: Option<OwnerId>) -> Vec<ApiKey>;
    fn revoke_api_keys(which: KeysToRevoke<'_>, at: UnixMillis) -> Vec<Box<str>>;
    fn rotate_api_key(prefix: &str, retired_name: &str, ends_at: UnixMillis, successor: &NewApiKey) -> Option<ApiKeyNumber>;
    fn touch_api_keys(used: &[(Box<str>, UnixMillis)]) -> ();
    fn redirection_limits() -> RedirectionLimits;
});

forward!(Sessions {
    fn add_session(session: &Session) -> bool;
    fn session(id: &str) -> Option<Session>;
    fn sessions(user: OwnerId, now: UnixMillis) -> Vec<Session>;
    fn end_session(user: OwnerId, id: &str) -> bool;
    fn end_sessions(user: OwnerId, but: Option<&str>) -> u64;
    fn touch_session(id: &str, used_at: UnixMillis, expires_at: UnixMillis) -> ();
    fn purge_sessions(now: UnixMillis, limit: usize) -> u64;
});

forward!(Invites {
    fn add_invite(invite: &Invite) -> bool;
    fn take_invite(secret_hash: &[u8; 32], now: UnixMillis) -> Option<Invite>;
    fn invite(secret_hash: &[u8; 32], now: UnixMillis) -> Option<Invite>;
    fn invites(now: UnixMillis, limit: usize) -> OpenInvites;
});

forward!(Permissions {
    fn grant(user: OwnerId, link: &LinkId, generation: u32, now: UnixMillis) -> Permission;
    fn revoke(id: PermissionId, link: &LinkId) -> bool;
    fn permissions(link: &LinkId, generation: u32, limit: usize) -> Vec<Permission>;
    fn may_follow(user: OwnerId, link: &LinkId, generation: u32) -> bool;
    fn revoke_released(released: &[LinkChange]) -> ();
});

forward!(AuditLog {
    fn record(entry: &AuditEntry) -> ();
    fn audit(before: Option<u64>, limit: usize) -> Vec<(u64, AuditEntry)>;
});
