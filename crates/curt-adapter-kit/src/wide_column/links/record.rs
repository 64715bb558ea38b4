//! A link as a row.

use std::collections::BTreeMap;

use async_trait::async_trait;
use curt_core::ports::{LinkChange, RequestToken};
use curt_core::{KeyOrigin, Link, LinkId, LinkState, PortResult, Revision, ShardId};

use crate::wide_column::{Decided, Mark, ReadMode, ScanPart, together};

/// The state of a row whose link was released: its generation is all that is left of it.
pub const RELEASED: i8 = 100;

/// The key under which a row has the generation of the link before, among its released links, where that does not follow
/// from its own; 0: there was none.
pub(super) const FORMER: i8 = -1;

/// Links that were released, by origin.
pub type ReleasedCounts = BTreeMap<i8, i64>;

/// Links as an engine keeps them: a row each. Every write of a row is conditional.
#[async_trait]
pub trait LinkRows: Send + Sync {
    async fn get(
        &self,
        op: &'static str,
        id: &LinkId,
        mode: ReadMode,
    ) -> PortResult<Option<Stored>>;

    /// Rows as they were acknowledged, in the order of `ids`.
    async fn get_many(&self, op: &'static str, ids: &[LinkId]) -> PortResult<Vec<Option<Stored>>> {
        let get = |id| self.get(op, id, ReadMode::Acknowledged);
        together(ids.iter().map(get)).await
    }

    /// Puts a whole row where there is none, or in the place of the one that was `seen`, if nothing changed that and no
    /// click was taken since.
    async fn put(
        &self,
        op: &'static str,
        new: &LinkPut<'_>,
        seen: Option<&Stored>,
    ) -> PortResult<Decided>;

    /// Replaces what an edit may change, if the row has the revision of `before`. The clicks that were spent stay.
    async fn edit(
        &self,
        op: &'static str,
        before: &StoredLink,
        after: &Link,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Adds one to the clicks that were spent, if these are `spent` and the link is active at the revision `seen`.
    async fn spend(
        &self,
        op: &'static str,
        id: &LinkId,
        seen: Revision,
        spent: u64,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Leaves of a tombstone its generation and `released`, if the row has its revision.
    async fn release(
        &self,
        op: &'static str,
        before: &StoredLink,
        released: &ReleasedCounts,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Some rows behind `after`. `is_exact`: nothing that was acknowledged is missing.
    async fn scan(
        &self,
        op: &'static str,
        after: Option<&str>,
        is_exact: bool,
    ) -> PortResult<ScanPart<ScannedLink>>;

    /// Released links of a shard that were counted elsewhere.
    async fn get_released(
        &self,
        op: &'static str,
        shard: ShardId,
    ) -> PortResult<Option<ReleasedCounts>>;

    /// Replaces these counts, if they are `before`.
    async fn put_released(
        &self,
        op: &'static str,
        shard: ShardId,
        before: Option<&ReleasedCounts>,
        after: &ReleasedCounts,
    ) -> PortResult<Decided>;

    /// Asks for what a write needs.
    async fn ping(&self, op: &'static str) -> PortResult<()>;
}

/// A whole row.
#[derive(Clone, Debug)]
pub struct LinkPut<'a> {
    pub id: &'a LinkId,
    pub row: PutRow<'a>,
    /// Links that had the key before.
    pub released: ReleasedCounts,
    pub mark: Mark,
}

/// What the row of a key is to say.
#[derive(Clone, Copy, Debug)]
pub enum PutRow<'a> {
    Link(PutLink<'a>),
    /// The link with this generation was released.
    Released(u32),
}

/// A link with what is kept beside it.
#[derive(Clone, Copy, Debug)]
pub struct PutLink<'a> {
    pub link: &'a Link,
    pub was_permanent: bool,
    pub spent: u64,
    pub token: Option<RequestToken>,
}

/// What is read of every row to find out which are wanted.
#[derive(Clone, Debug)]
pub struct ScannedLink {
    pub name: RowName,
    pub state: i8,
    pub origin: Option<i8>,
    pub released: ReleasedCounts,
}

/// What a row among the links is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowName {
    Link(LinkId),
    /// Released links of this shard that were counted elsewhere.
    Released(ShardId),
}

/// A stored link with what is kept beside it.
#[derive(Clone, Debug)]
pub struct StoredLink {
    pub link: Link,
    /// Whether it ever had a permanent status: browsers may remember its answer for good.
    pub was_permanent: bool,
    pub spent: u64,
    pub token: Option<RequestToken>,
    /// The call that made the latest change.
    pub changed_by: Option<Mark>,
    /// The call that took the latest click.
    pub spent_by: Option<Mark>,
    /// Links that had the key before.
    pub released: ReleasedCounts,
}

/// What a key's row says.
#[derive(Clone, Debug)]
pub enum Stored {
    Link(Box<StoredLink>),
    /// The last link was released; the next one has a higher generation.
    Released {
        generation: u32,
        /// The call that released it.
        by: Option<Mark>,
        /// Links that had the key.
        released: ReleasedCounts,
    },
}

impl Stored {
    /// The calls that made the latest change and took the latest click: by them the row is told from what it may become.
    #[must_use]
    pub fn last_writers(&self) -> (Option<Mark>, Option<Mark>) {
        match self {
            Self::Link(row) => (row.changed_by, row.spent_by),
            Self::Released { by, .. } => (*by, None),
        }
    }

    pub(super) fn was_changed_by(&self, mark: Mark) -> bool {
        self.last_writers().0 == Some(mark)
    }

    /// Links that had the key before the one that comes into its row.
    pub(super) fn released_before(&self) -> ReleasedCounts {
        let mut released = match self {
            Self::Link(row) => row.released.clone(),
            Self::Released { released, .. } => released.clone(),
        };
        released.remove(&FORMER);
        released
    }

    pub(super) fn into_link(self) -> Option<StoredLink> {
        match self {
            Self::Link(link) => Some(*link),
            Self::Released { .. } => None,
        }
    }
}

impl<'a> PutLink<'a> {
    /// A link that is new under its key.
    pub(super) fn new(link: &'a Link, token: RequestToken) -> Self {
        Self {
            link,
            was_permanent: link.status.is_permanent(),
            spent: 0,
            token: Some(token),
        }
    }
}

impl StoredLink {
    pub(super) fn has_token(&self, token: RequestToken) -> bool {
        self.token == Some(token)
    }

    pub(super) fn was_changed_by(&self, mark: Mark) -> bool {
        self.changed_by == Some(mark)
    }

    pub(super) fn was_spent_by(&self, mark: Mark) -> bool {
        self.spent_by == Some(mark)
    }

    pub(super) fn change(&self) -> LinkChange {
        LinkChange::of(&self.link)
    }

    pub(super) fn is_releasable(&self) -> bool {
        is_releasable(&self.link, self.was_permanent)
    }
}

/// Whether a link is a tombstone whose key may be used again. A permanent answer is remembered by browsers for good.
pub(super) fn is_releasable(link: &Link, was_permanent: bool) -> bool {
    link.state == LinkState::Tombstone && link.origin != KeyOrigin::Alias && !was_permanent
}
