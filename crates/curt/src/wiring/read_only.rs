//! A server that takes no writes for a while, so that its data can be copied to another database while redirects go on.
//!
//! What is refused is every call of a port that changes something, with [`Unavailable`](ErrorKind::Unavailable):
//! requests are answered 503 with Retry-After, and tasks try again later. Clicks stay in the spool meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::account::{ApiKeyNumber, User};
use curt_core::names::event;
use curt_core::ports::{
    Accounts, ApiKey, ApiKeys, AuditEntry, AuditLog, BeginReply, ChangeReply, ClickDamage,
    ClickDatabase, ClickPage, ClickQuery, ClickRanking, ClickReports, ClickStore, ClickWindow,
    CreationOutcome, CreationPlan, Erasure, HourRange, Idempotency, IdempotentRequest, Inserted,
    Invite, Invites, KeysToRevoke, LinkChange, LinkIndex, LinkPorts, LinkStore, ListOrder,
    ListPage, ListQuery, NewApiKey, OpenInvites, Permission, PermissionId, Permissions,
    RedirectionLimits, RequestToken, Salt, SeededLinks, Session, Sessions, SpendReply,
    StreamPartition, Top, UserChange, UserRemoval, Users,
};
use curt_core::{
    ClickSubject, Day, Dimension, ErrorKind, Link, LinkId, OwnerId, PortError, PortResult,
    Revision, Rollup, UnixMillis,
};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::config::Config;

/// The file in `data_dir` that makes the server refuse writes while it is there.
const FILE: &str = "read-only";
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Whether the server refuses writes.
#[derive(Clone, Debug)]
pub(crate) struct ReadOnly {
    is_on: Arc<AtomicBool>,
    file: PathBuf,
}

impl ReadOnly {
    /// As the file says now.
    pub(crate) fn look(config: &Config) -> Self {
        let file = config.data_dir.join(FILE);
        let is_on = Arc::new(AtomicBool::new(file.exists()));
        Self { is_on, file }
    }

    /// Follows the file until `stop`.
    pub(crate) async fn watch(self, stop: CancellationToken) {
        loop {
            let is_on = self.file.exists();
            if self.is_on.swap(is_on, Ordering::SeqCst) != is_on {
                info!(
                    event = event::READ_ONLY_CHANGED,
                    is_on, "read-only mode changed"
                );
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    fn require_off(&self) -> PortResult<()> {
        match self.is_on.load(Ordering::SeqCst) {
            false => Ok(()),
            true => {
                let detail = format!(
                    "the server takes no writes while its data is copied: it does again when {} is removed",
                    self.file.display()
                );
                Err(PortError::new(
                    ErrorKind::Unavailable,
                    "curt",
                    "write",
                    detail,
                ))
            }
        }
    }

    /// The same ports, which refuse writes when they are to.
    #[must_use]
    pub(crate) fn guard_links(&self, ports: LinkPorts) -> LinkPorts {
        LinkPorts {
            store: self.guard(ports.store),
            index: self.guard(ports.index),
            totals: ports.totals,
            idempotency: self.guard(ports.idempotency),
            seeded: ports.seeded.map(|seeded| self.guard(seeded) as _),
            homes: ports.homes,
            nodes: self.guard_nodes(ports.nodes),
        }
    }

    fn guard_nodes(&self, nodes: Vec<Arc<dyn LinkIndex>>) -> Vec<Arc<dyn LinkIndex>> {
        let nodes = nodes.into_iter();
        nodes.map(|node| self.guard(node) as _).collect()
    }

    #[must_use]
    pub(crate) fn guard_accounts(&self, accounts: Arc<dyn Accounts>) -> Arc<dyn Accounts> {
        self.guard(accounts)
    }

    #[must_use]
    pub(crate) fn guard_clicks(&self, clicks: Arc<dyn ClickDatabase>) -> Arc<dyn ClickDatabase> {
        self.guard(clicks)
    }

    fn guard<P: ?Sized>(&self, inner: Arc<P>) -> Arc<Guarded<P>> {
        let read_only = self.clone();
        Arc::new(Guarded { inner, read_only })
    }
}

/// A port that refuses writes when it is to.
struct Guarded<P: ?Sized> {
    inner: Arc<P>,
    read_only: ReadOnly,
}

/// Implements a port for what has it: `read` methods pass, `write` methods are refused when they are to be.
macro_rules! guard {
    ($port:ident of $whole:ident: $($kind:ident $method:ident($($name:ident: $type:ty),*) -> $reply:ty;)+) => {
        #[async_trait]
        impl $port for Guarded<dyn $whole> {
            $(async fn $method(&self, $($name: $type),*) -> PortResult<$reply> {
                guard!(@$kind self);
                self.inner.$method($($name),*).await
            })+
        }
    };
    (@read $self:ident) => {};
    (@write $self:ident) => { $self.read_only.require_off()? };
}

guard!(LinkStore of LinkStore:
    write insert_if_absent(links: Vec<Link>, token: Option<RequestToken>) -> Vec<Inserted>;
    write insert_each(links: Vec<Link>, token: Option<RequestToken>) -> Vec<PortResult<Inserted>>;
    read get(id: &LinkId) -> Option<Link>;
    read get_nearby(id: &LinkId) -> Option<Link>;
    read get_many(ids: &[LinkId]) -> Vec<Option<Link>>;
    write update_at(link: Link, seen: Revision) -> ChangeReply;
    write hand_over_at(id: &LinkId, seen: Revision, owner: OwnerId, now: UnixMillis) -> ChangeReply;
    write delete_at(id: &LinkId, seen: Revision, now: UnixMillis) -> ChangeReply;
    write spend_click(id: &LinkId, seen: Revision) -> SpendReply;
    read clicks_spent(id: &LinkId) -> u64;
    read clicks_spent_many(ids: &[LinkId]) -> Vec<u64>;
    read ping() -> ();
    read ping_reads() -> ();
);

guard!(LinkIndex of LinkIndex:
    read list(query: &ListQuery) -> ListPage;
    read cursor_behind(link: &Link, order: ListOrder) -> Option<Box<str>>;
    read ended(before: UnixMillis, limit: usize) -> Vec<(LinkId, Revision)>;
    write purge(batch: &[(LinkId, Revision)], before: UnixMillis, now: UnixMillis) -> Vec<LinkChange>;
    write release(before: UnixMillis, limit: usize) -> Vec<LinkChange>;
);

guard!(Idempotency of Idempotency:
    write begin(request: &IdempotentRequest, plan: &CreationPlan) -> BeginReply;
    write replace_plan(request: &IdempotentRequest, plan: &CreationPlan) -> CreationPlan;
    write finish(request: &IdempotentRequest, token: RequestToken, outcome: CreationOutcome) -> CreationOutcome;
    write cancel(request: &IdempotentRequest, token: RequestToken) -> bool;
    write forget_before(before: UnixMillis, limit: usize) -> usize;
);

guard!(SeededLinks of SeededLinks:
    write seed(ids: &[LinkId]) -> u64;
    write claim(links: Vec<Link>) -> Vec<Link>;
);

guard!(Users of Accounts:
    write add_user(user: &User) -> bool;
    read user(id: OwnerId) -> Option<User>;
    read user_by_email(email: &str) -> Option<User>;
    read users(after: Option<OwnerId>, limit: usize) -> Vec<User>;
    write update_user(user: &User, seen: UnixMillis) -> UserChange;
    write remove_user(id: OwnerId) -> UserRemoval;
    read anybody_can_sign_in() -> bool;
    read disabled_users() -> Vec<OwnerId>;
);

guard!(ApiKeys of Accounts:
    write add_api_key(key: &NewApiKey) -> Option<ApiKeyNumber>;
    read api_key(prefix: &str) -> Option<ApiKey>;
    read api_keys(user: Option<OwnerId>) -> Vec<ApiKey>;
    write revoke_api_keys(which: KeysToRevoke<'_>, at: UnixMillis) -> Vec<Box<str>>;
    write rotate_api_key(
        prefix: &str,
        retired_name: &str,
        ends_at: UnixMillis,
        successor: &NewApiKey
    ) -> Option<ApiKeyNumber>;
    write touch_api_keys(used: &[(Box<str>, UnixMillis)]) -> ();
    read redirection_limits() -> RedirectionLimits;
);

guard!(Sessions of Accounts:
    write add_session(session: &Session) -> bool;
    read session(id: &str) -> Option<Session>;
    read sessions(user: OwnerId, now: UnixMillis) -> Vec<Session>;
    write end_session(user: OwnerId, id: &str) -> bool;
    write end_sessions(user: OwnerId, but: Option<&str>) -> u64;
    write touch_session(id: &str, used_at: UnixMillis, expires_at: UnixMillis) -> ();
    write purge_sessions(now: UnixMillis, limit: usize) -> u64;
);

guard!(Invites of Accounts:
    write add_invite(invite: &Invite) -> bool;
    write take_invite(secret_hash: &[u8; 32], now: UnixMillis) -> Option<Invite>;
    read invite(secret_hash: &[u8; 32], now: UnixMillis) -> Option<Invite>;
    read invites(now: UnixMillis, limit: usize) -> OpenInvites;
);

guard!(Permissions of Accounts:
    write grant(user: OwnerId, link: &LinkId, generation: u32, now: UnixMillis) -> Permission;
    write revoke(id: PermissionId, link: &LinkId) -> bool;
    read permissions(link: &LinkId, generation: u32, limit: usize) -> Vec<Permission>;
    read may_follow(user: OwnerId, link: &LinkId, generation: u32) -> bool;
    write revoke_released(released: &[LinkChange]) -> ();
);

guard!(AuditLog of Accounts:
    write record(entry: &AuditEntry) -> ();
    read audit(before: Option<u64>, limit: usize) -> Vec<(u64, AuditEntry)>;
);

guard!(ClickStore of ClickDatabase:
    read offset(partition: StreamPartition) -> u64;
    write apply(flush: ClickWindow) -> bool;
    write salt(day: Day, fresh: Salt) -> Salt;
    write forget_salts(before: Day) -> ();
    write purge_clicks(before: UnixMillis, limit: usize) -> u64;
    write trim_clicks(bytes_max: u64, limit: usize) -> u64;
    write compact() -> ();
    read free_bytes() -> Option<u64>;
    read checkpoint() -> ();
    read damage() -> Option<ClickDamage>;
    write purge_rollups(before: Day, limit: usize) -> u64;
    write erase_clicks(link: LinkId, generation: u32, pieces_max: usize) -> Erasure;
    write erase_rollups(link: LinkId, generation: u32, pieces_max: usize) -> Erasure;
);

guard!(ClickReports of ClickDatabase:
    read series(subject: &ClickSubject, dimension: Dimension, range: HourRange) -> Vec<Rollup>;
    read top(subject: &ClickSubject, dimension: Dimension, range: HourRange, limit: usize) -> Top;
    read visitors(subject: &ClickSubject, from: Day, before: Day) -> Vec<(Day, u64)>;
    read clicks(query: &ClickQuery) -> ClickPage;
    read rank_clicks(ranking: &ClickRanking) -> Top;
);
