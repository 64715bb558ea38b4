use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use curt_core::ports::{ChangeReply, Inserted, LinkChange, LinkCounts, RequestToken, SpendReply};
use curt_core::{DomainId, KeyOrigin, Link, LinkId, LinkState, Revision, ShardId, UnixMillis};

mod moves;
mod transfer;

pub(super) use moves::Changed;
use moves::Offset;

type ByTime = BTreeSet<(UnixMillis, LinkId)>;

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) link: Link,
    /// Whether the link ever had a permanent status: browsers may remember its answer for good, whatever it is now.
    was_permanent: bool,
    pub(super) clicks_spent: u64,
    /// Of the request that created it.
    token: Option<RequestToken>,
}

impl Row {
    pub(super) fn new(link: Link) -> Self {
        let was_permanent = link.status.is_permanent();
        Self {
            link,
            was_permanent,
            clicks_spent: 0,
            token: None,
        }
    }

    pub(super) fn followed_by(&self, link: Link) -> Self {
        let was_permanent = self.was_permanent || link.status.is_permanent();
        Self {
            link,
            was_permanent,
            ..*self
        }
    }

    /// The tombstone that this row leaves at `now`.
    pub(super) fn to_tombstone(&self, now: UnixMillis) -> Self {
        self.followed_by(Link {
            state: LinkState::Tombstone,
            revision: self.link.revision.edited(),
            updated_at: now,
            title: None,
            tags: Vec::new(),
            password_hash: None,
            ..self.link.clone()
        })
    }

    fn is_releasable(&self) -> bool {
        self.link.state == LinkState::Tombstone
            && self.link.origin != KeyOrigin::Alias
            && !self.was_permanent
    }
}

/// All rows by id. Every index and every total is brought up to date in [`put`](Self::put) and
/// [`remove`](Self::remove), the only two ways to change a row.
#[derive(Debug, Default)]
pub(super) struct Rows {
    by_id: BTreeMap<LinkId, Row>,
    /// Links that lists show, deleted ones too.
    by_creation: ByTime,
    /// When links ended or will end: active ones by their expiry, deleted ones by their deletion.
    by_end: ByTime,
    /// Tombstones whose key may be used again after its quarantine.
    by_deletion: ByTime,
    seeds: BTreeSet<LinkId>,
    /// The generation of the last link that had a key which was released since.
    former_generations: HashMap<LinkId, u32>,
    created: BTreeMap<u8, u64>,
    live: u64,
    deleted: u64,
    deleted_from_ledger: u64,
    /// Released keys by shard and origin.
    released: HashMap<(ShardId, KeyOrigin), u64>,
    /// What the totals are more than what is counted here: shards that moved are counted elsewhere.
    pub(super) offset: Offset,
    /// Shards whose changes are remembered, with the fences of their movers.
    pub(super) tracked: BTreeMap<ShardId, u64>,
    pub(super) changes: BTreeMap<i64, Changed>,
    changes_noted: i64,
}

impl Rows {
    pub(super) fn get(&self, id: &LinkId) -> Option<&Row> {
        self.by_id.get(id)
    }

    /// The row, if it is a link that may be changed by somebody who saw `seen`; otherwise what to answer.
    pub(super) fn changeable(&self, id: &LinkId, seen: Revision) -> Result<&Row, ChangeReply> {
        let row = self.get(id).filter(|row| row.link.state.is_kept());
        let row = row.ok_or(ChangeReply::Absent)?;
        if seen != row.link.revision {
            return Err(ChangeReply::Stale(row.link.revision));
        }
        Ok(row)
    }

    /// Adds a link that did not exist before and counts it.
    pub(super) fn create(&mut self, row: Row) {
        *self.created.entry(row.link.origin as u8).or_default() += 1;
        self.put(row);
    }

    pub(super) fn insert_if_absent(
        &mut self,
        mut link: Link,
        token: Option<RequestToken>,
    ) -> Inserted {
        if let Some(row) = self.get(&link.id) {
            return match token.is_some() && row.token == token {
                true => Inserted::CreatedBefore(LinkChange::of(&row.link)),
                false => Inserted::Conflict,
            };
        }
        let former = self.former_generation(&link.id);
        link.revision = link.revision.after_former(former);
        let change = LinkChange::of(&link);
        self.create(Row {
            token,
            ..Row::new(link)
        });
        Inserted::Created(change)
    }

    /// `None` if no link with this key was released.
    pub(super) fn former_generation(&self, id: &LinkId) -> Option<u32> {
        self.former_generations.get(id).copied()
    }

    pub(super) fn put(&mut self, row: Row) {
        let id = row.link.id.clone();
        self.remove(&id);
        self.note_change(Changed::Link(id.clone()));
        let link = &row.link;
        if link.state.is_kept() {
            self.by_creation.insert((link.created_at, id.clone()));
        }
        if let Some(at) = end_of(link) {
            self.by_end.insert((at, id.clone()));
        }
        self.live += u64::from(link.state.is_live());
        if link.state == LinkState::Seeded {
            self.seeds.insert(id.clone());
        }
        if counts_as_deleted(link) {
            self.deleted += 1;
            self.deleted_from_ledger += u64::from(link.origin == KeyOrigin::Ledger);
        }
        if row.is_releasable() {
            self.by_deletion.insert((link.updated_at, id.clone()));
        }
        self.by_id.insert(id, row);
    }

    /// Remembers a change of a shard that moves.
    pub(super) fn note_change(&mut self, changed: Changed) {
        if self.tracked.contains_key(&changed.shard()) {
            self.changes_noted += 1;
            self.changes.insert(self.changes_noted, changed);
        }
    }

    fn remove(&mut self, id: &LinkId) {
        let Some(row) = self.by_id.remove(id) else {
            return;
        };
        self.note_change(Changed::Link(id.clone()));
        let link = row.link;
        self.live -= u64::from(link.state.is_live());
        self.by_creation.remove(&(link.created_at, id.clone()));
        self.by_deletion.remove(&(link.updated_at, id.clone()));
        self.seeds.remove(id);
        if let Some(at) = end_of(&link) {
            self.by_end.remove(&(at, id.clone()));
        }
        if counts_as_deleted(&link) {
            self.deleted -= 1;
            self.deleted_from_ledger -= u64::from(link.origin == KeyOrigin::Ledger);
        }
    }

    pub(super) fn spend_click(&mut self, id: &LinkId, seen: Revision) -> SpendReply {
        let as_seen =
            |row: &&mut Row| row.link.state == LinkState::Active && row.link.revision == seen;
        let Some(row) = self.by_id.get_mut(id).filter(as_seen) else {
            return SpendReply::Stale;
        };
        match row.link.max_clicks {
            None => SpendReply::Granted,
            Some(most) if row.clicks_spent >= most => SpendReply::Exhausted,
            Some(_) => {
                row.clicks_spent += 1;
                self.note_change(Changed::Link(id.clone()));
                SpendReply::Granted
            }
        }
    }

    pub(super) fn ended(&self, before: UnixMillis) -> impl Iterator<Item = &Link> {
        self.by_end
            .iter()
            .take_while(move |(at, _)| *at <= before)
            .filter_map(|(_, id)| self.by_id.get(id))
            .map(|row| &row.link)
    }

    pub(super) fn release(
        &mut self,
        before: UnixMillis,
        limit: usize,
        is_owned: impl Fn(&LinkId) -> bool,
    ) -> Vec<LinkChange> {
        let ended = self.by_deletion.iter().take_while(|(at, _)| *at <= before);
        let ended = ended.map(|(_, id)| id).filter(|id| is_owned(id));
        let ids: Vec<LinkId> = ended.take(limit).cloned().collect();
        let mut released = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(row) = self.get(&id) else { continue };
            let (origin, change) = (row.link.origin, LinkChange::of(&row.link));
            let name = (ShardId::of(&id), origin);
            *self.released.entry(name).or_default() += 1;
            self.remove(&id);
            let generation = change.revision.generation;
            self.former_generations.insert(id, generation);
            released.push(change);
        }
        released
    }

    /// A different seed for each domain asked for, up to the first that has none left.
    pub(super) fn seeds_for(
        &self,
        domains: &[DomainId],
        is_owned: impl Fn(&LinkId) -> bool,
    ) -> Vec<(LinkId, Revision)> {
        let mut seeds = Vec::new();
        let is_owned = &is_owned;
        let of = |domain: DomainId| {
            let seeds = self.seeds.iter();
            seeds.filter(move |id| id.domain == domain && is_owned(id))
        };
        let mut streams: BTreeMap<DomainId, _> = BTreeMap::new();
        for &domain in domains {
            let stream = streams.entry(domain).or_insert_with(|| of(domain));
            let Some(id) = stream.next() else { break };
            let revision = self.get(id).map(|row| row.link.revision);
            seeds.push((id.clone(), revision.unwrap_or_default()));
        }
        seeds
    }

    /// Kept links in order of creation, and all rows in order of id: what lists walk over.
    pub(super) fn by_creation(&self) -> &ByTime {
        &self.by_creation
    }

    pub(super) fn by_id(&self) -> &BTreeMap<LinkId, Row> {
        &self.by_id
    }

    /// The totals, with what was released of the shards that are counted.
    pub(super) fn counts(&self, is_counted: impl Fn(ShardId) -> bool) -> LinkCounts {
        let plus = |count: u64, offset: i64| count.saturating_add_signed(offset);
        let created = |origin: KeyOrigin| {
            let count = self.created.get(&(origin as u8)).copied();
            let offset = self.offset.created.get(&(origin as u8)).copied();
            (origin, plus(count.unwrap_or(0), offset.unwrap_or(0)))
        };
        let counted = ShardId::all().filter(|shard| is_counted(*shard));
        LinkCounts {
            created: KeyOrigin::ALL.into_iter().map(created).collect(),
            live: plus(self.live, self.offset.live),
            deleted: plus(self.deleted, self.offset.deleted),
            deleted_from_ledger: plus(self.deleted_from_ledger, self.offset.deleted_from_ledger),
            released_from_ledger: self.released_from(KeyOrigin::Ledger, counted),
            seeded: plus(self.seeds.len() as u64, self.offset.seeded),
            lag: Duration::ZERO,
        }
    }

    /// The same of one shard, counted.
    pub(super) fn shard_counts(&self, shard: ShardId) -> LinkCounts {
        let links = self.by_id.values().map(|row| &row.link);
        let links: Vec<&Link> = links
            .filter(|link| ShardId::of(&link.id) == shard)
            .collect();
        let count = |is_meant: &dyn Fn(&Link) -> bool| {
            links.iter().filter(|link| is_meant(link)).count() as u64
        };
        let created = |origin: KeyOrigin| {
            let there = count(&|link| link.origin == origin && link.state != LinkState::Seeded);
            (origin, there + self.released_from(origin, [shard]))
        };
        LinkCounts {
            created: KeyOrigin::ALL.into_iter().map(created).collect(),
            live: count(&|link| link.state.is_live()),
            deleted: count(&counts_as_deleted),
            deleted_from_ledger: count(&|link| {
                counts_as_deleted(link) && link.origin == KeyOrigin::Ledger
            }),
            released_from_ledger: self.released_from(KeyOrigin::Ledger, [shard]),
            seeded: count(&|link| link.state == LinkState::Seeded),
            lag: Duration::ZERO,
        }
    }

    fn released_from(&self, origin: KeyOrigin, shards: impl IntoIterator<Item = ShardId>) -> u64 {
        let released = |shard| self.released.get(&(shard, origin));
        shards.into_iter().filter_map(released).sum()
    }
}

/// When the link ended or will end, after which it may be purged.
pub(super) fn end_of(link: &Link) -> Option<UnixMillis> {
    link.ended_at(UnixMillis(i64::MAX))
}

fn counts_as_deleted(link: &Link) -> bool {
    link.state == LinkState::Tombstone || link.state.is_deleted()
}
