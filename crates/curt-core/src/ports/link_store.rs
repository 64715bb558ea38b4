use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::{DomainId, Key, LinkId};
use crate::link::{Link, Revision};
use crate::owner::OwnerId;

/// The links database. The only judge of uniqueness (K-1).
#[async_trait]
pub trait LinkStore: Send + Sync {
    /// Inserts each link whose id is free, and says so per link, in order. A row in any state, tombstones and seeded
    /// rows included, makes an id taken. Items are independent unless `once` is given.
    ///
    /// - *Durable*: what is reported as created survives a crash of everything (L-1).
    /// - *Under a key that another link had before* and that
    ///   [`release`](super::LinkIndex::release) gave back: the stored generation
    ///   is one more than that link's, whatever the request says, and the outcome tells it
    ///   ([`Inserted::CreatedAnew`]). So nothing that names the generation of the former link is about the new one.
    /// - *Twice in one request*: the first wins.
    /// - *With `once`*: the request is applied as a whole or not at all, in one step with the record of it. If a
    ///   generated key ([`KeyOrigin`] other than `Alias`) is taken, nothing is applied and the reply is
    ///   [`InsertReply::Stored`] with the conflicts marked and nothing created; the caller comes again with fresh keys.
    ///   A taken alias is an answer like any other and is recorded.
    /// - *Called again with the same `once`*: [`InsertReply::Replayed`] with the recorded outcome, or
    ///   [`InsertReply::Mismatch`] when the fingerprint differs. Records older than
    ///   [`IDEMPOTENCY_KEPT`](crate::limits::IDEMPOTENCY_KEPT) count as absent.
    /// - *Timed out*: unknown; with `once` it is safe to call again.
    async fn insert(&self, request: InsertRequest) -> PortResult<InsertReply>;

    /// The record under `id` in any state, tombstones included. Absent: `None`.
    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>>;

    /// Replaces the link if it is not a tombstone and still has the revision `seen`; the stored revision becomes
    /// `seen.edited()`, whatever `link.revision` says. Identity, owner, `made_with`, origin and creation time are never
    /// changed. Called twice with the same `seen`: the second is `Stale`.
    async fn update(&self, link: Link, seen: Revision) -> PortResult<ChangeReply>;

    /// Turns the link into a tombstone at `now`: state `Deleted`, revision edited, `updated_at = now`. The target stays
    /// for the owner's records; title, tags and password go. With `seen`, only at that revision. A tombstone stays as
    /// it is and answers [`ChangeReply::Absent`].
    async fn delete(
        &self,
        id: &LinkId,
        seen: Option<Revision>,
        now: UnixMillis,
    ) -> PortResult<ChangeReply>;

    /// Takes one visit from a link with `max_clicks`, if it is active, still has the revision `seen` and has one left,
    /// all in one step: of any number of callers at once, as many are granted as there are visits left. A link without
    /// `max_clicks` grants every visit and counts none.
    ///
    /// What was taken stays taken over edits, so that a raised limit leaves the difference; it goes when the key is
    /// released. Durable when it returns. Called twice: two visits. Timed out: unknown, at worst one visit is lost.
    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply>;

    /// How many visits [`spend_click`](Self::spend_click) has taken from the link. Absent or without a limit: 0.
    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64>;

    /// Whether the engine answers, reads and writes alike.
    async fn ping(&self) -> PortResult<()>;

    /// Whether links can be looked up, the way a redirect does, where writing may be impossible. To be called about once
    /// a second by a process that serves redirects.
    async fn ping_reads(&self) -> PortResult<()> {
        match Key::parse("health") {
            // A key that no link can have.
            Ok(key) => self
                .get(&LinkId::new(DomainId::DEFAULT, key))
                .await
                .map(drop),
            Err(_) => Ok(()),
        }
    }
}

/// What one client asked to be created.
#[derive(Clone, Debug)]
pub struct InsertRequest {
    pub links: Vec<Link>,
    pub once: Option<Once>,
    pub now: UnixMillis,
}

/// The client's `Idempotency-Key` with a digest of what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Once {
    pub owner: OwnerId,
    pub key: Box<str>,
    pub fingerprint: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertReply {
    /// One outcome per link, in order.
    Stored(Vec<Inserted>),
    /// The same request was applied before.
    Replayed(Replay),
    /// The same `Idempotency-Key` was used for a different request.
    Mismatch,
}

/// The recorded outcome of an idempotent request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The `now` of the request that was applied. A link under one of the ids that was created at another time is not
    /// the one that it made.
    pub at: UnixMillis,
    /// Its links, in order; `None` where an alias had been taken.
    pub ids: Vec<Option<LinkId>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    Created,
    /// Created under a key that belonged to another link before, with this generation instead of the request's.
    CreatedAnew(u32),
    /// The id belongs to another link. Nothing was changed.
    Conflict,
    /// Not applied because another item of a request with `once` met a conflict.
    Withheld,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeReply {
    /// The link as it is now.
    Changed(Box<Link>),
    /// Somebody changed it in between; this is its revision now.
    Stale(Revision),
    /// No such link, or a tombstone.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendReply {
    Granted,
    /// No visit was left.
    Exhausted,
    /// The link is not the active one that the caller saw: it should look again.
    Stale,
}

impl Inserted {
    /// The generation to store a link with that names `wanted`, under a key whose last link had `former` and was
    /// released, and the outcome that tells it.
    #[must_use]
    pub fn with_generation(wanted: u32, former: Option<u32>) -> (u32, Self) {
        match former.map(|former| former.saturating_add(1)) {
            Some(next) if next > wanted => (next, Self::CreatedAnew(next)),
            _ => (wanted, Self::Created),
        }
    }

    #[must_use]
    pub fn is_created(self) -> bool {
        matches!(self, Self::Created | Self::CreatedAnew(_))
    }
}
