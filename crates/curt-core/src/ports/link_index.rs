use async_trait::async_trait;

use super::LinkChange;
use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::LinkId;
use crate::link::{EffectiveState, Link, Revision};
use crate::owner::OwnerId;

/// Links found by something other than their key: by owner, age or expiry.
#[async_trait]
pub trait LinkIndex: Send + Sync {
    /// One page of links that are not tombstones or seeded rows, nor deleted unless the query asks for these, filtered by
    /// the query's owner in the query itself.
    /// Reads at most [`PAGE_ROWS_SCANNED_MAX`](crate::limits::PAGE_ROWS_SCANNED_MAX) rows: a page may be short, even
    /// empty, and still have a `next`. A cursor from another engine or order is `Invalid`.
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage>;

    /// The cursor of a page in this order that begins behind `link`, which some database of the same engine listed a
    /// moment ago: so lists of several databases can be merged. `None`: the position is known only where the link is
    /// stored, and it is not stored here.
    async fn cursor_behind(&self, link: &Link, order: ListOrder) -> PortResult<Option<Box<str>>>;

    /// Up to `limit` links that ended at or before `before`: active ones by their expiry, deleted ones by their deletion
    /// (`updated_at`); those that ended first come first.
    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>>;

    /// Turns each link that is still at the given revision and has [ended](Self::ended) at or before `before` into a
    /// tombstone at `now`, as [`LinkStore::delete_at`](super::LinkStore::delete_at) does. Returns what this call
    /// changed. Called twice: the second changes nothing.
    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>>;

    /// Removes up to `limit` tombstones whose quarantine has ended (`updated_at` at or before `before`) and returns
    /// the tombstones whose keys may go back into the supply: never an alias, never a link that was served with a permanent
    /// status. Tombstones that do not qualify stay. The caller gives the keys to the ledger afterwards; a crash in
    /// between leaks at most `limit` keys.
    ///
    /// Nothing of a released link stays but its generation, which is remembered for good: the next link under the key
    /// has the next one, however it comes to be (`insert_if_absent`, or `seed` and `claim`). Clicks that were taken go.
    /// A recorded outcome of an idempotent request still names the key, and tells by its time that it was another link's.
    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>>;
}

/// What to list. Text is compared by ASCII case folding.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// `None` lists everybody's: only for administrators.
    pub owner: Option<OwnerId>,
    /// Part of the key, target or title.
    pub search: Option<Box<str>>,
    /// Links that carry every one of these tags.
    pub tags: Vec<Box<str>>,
    /// Links that are in this state at `now`. `None`: in any but [`EffectiveState::Deleted`].
    pub state: Option<EffectiveState>,
    /// What time it is for `state`.
    pub now: UnixMillis,
    pub created_from: Option<UnixMillis>,
    pub created_before: Option<UnixMillis>,
    /// Links that expire before this instant.
    pub expires_before: Option<UnixMillis>,
    pub order: ListOrder,
    /// Opaque position from the page before.
    pub cursor: Option<Box<str>>,
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListOrder {
    #[default]
    NewestFirst,
    OldestFirst,
    KeyRising,
    KeyFalling,
}

#[derive(Clone, Debug, Default)]
pub struct ListPage {
    pub links: Vec<Link>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<Box<str>>,
}
