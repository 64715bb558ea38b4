//! The whole store, to be copied to another one or from one.

use std::ops::Bound;

use async_trait::async_trait;
use curt_core::ports::{
    FollowedChanges, ImportReport, LinkItem, LinkTransfer, ShardItem, Transfer, TransferPart,
    Transferred,
};
use curt_core::{ErrorKind, KeyOrigin, LinkId, PortError, PortResult, ShardId, UnixMillis};

use super::rows::Changed;
use super::{MemoryLinkStore, Tables};
use crate::{BACKEND, locked};

const ROWS_AT_ONCE: usize = 1_000;
const OP_EXPORT: &str = "export links";
const OP_FOLLOW: &str = "follow changes";

/// Where an export goes on.
enum Position {
    /// Links that lists show, by their creation.
    Listed(Option<(UnixMillis, LinkId)>),
    Others(Option<LinkId>),
}

impl Position {
    fn read(text: Option<&str>) -> Option<Self> {
        let Some(text) = text else {
            return Some(Self::Listed(None));
        };
        match text.split_at_checked(1)? {
            ("l", rest) => {
                let (at, id) = rest.split_once(':')?;
                let at = UnixMillis(at.parse().ok()?);
                Some(Self::Listed(Some((at, LinkId::parse(id)?))))
            }
            ("o", "") => Some(Self::Others(None)),
            ("o", id) => LinkId::parse(id).map(|id| Self::Others(Some(id))),
            _ => None,
        }
    }
}

fn bound<T>(after: Option<T>) -> (Bound<T>, Bound<T>) {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    (from, Bound::Unbounded)
}

impl Tables {
    fn export_listed(&self, after: Option<(UnixMillis, LinkId)>) -> TransferPart<LinkItem> {
        let listed = self.rows.by_creation().range(bound(after));
        let listed: Vec<_> = listed.take(ROWS_AT_ONCE).collect();
        let last = listed.last().filter(|_| listed.len() == ROWS_AT_ONCE);
        let next = last.map_or("o".to_owned(), |(at, id)| format!("l{}:{id}", at.0));
        TransferPart {
            items: self.items(listed.iter().map(|(_, id)| id)),
            next: Some(next.into()),
        }
    }

    /// Tombstones and seeds, and with the last of them all that is kept beside links.
    fn export_others(&self, after: Option<LinkId>) -> TransferPart<LinkItem> {
        let others = self.rows.by_id().range(bound(after));
        let others = others.filter(|(_, row)| !row.link.state.is_kept());
        let others: Vec<&LinkId> = others.map(|(id, _)| id).take(ROWS_AT_ONCE).collect();
        let mut items = self.items(others.iter().copied());
        if let Some(last) = others.last().filter(|_| others.len() == ROWS_AT_ONCE) {
            let next = Some(format!("o{last}").into());
            return TransferPart { items, next };
        }
        for shard in ShardId::all() {
            let former = self.rows.former_ids_of(shard);
            let gone = former.iter().filter(|id| self.rows.get(id).is_none());
            items.extend(self.items(gone));
            let requests = self.records.names_of(shard).into_iter();
            items.extend(requests.filter_map(|name| LinkItem::new(self.records.item_of(name))));
        }
        items.extend(self.released());
        TransferPart { items, next: None }
    }

    fn items<'a>(&self, ids: impl Iterator<Item = &'a LinkId>) -> Vec<LinkItem> {
        ids.filter_map(|id| LinkItem::new(self.rows.item_of(id)))
            .collect()
    }

    fn released(&self) -> impl Iterator<Item = LinkItem> {
        ShardId::all().flat_map(|shard| {
            let released = self.rows.released_of(shard).into_iter();
            released.map(move |item| LinkItem { shard, item })
        })
    }

    /// What is stored under the same name.
    fn there(&self, item: &LinkItem) -> LinkItem {
        let shard = item.shard;
        let item = match &item.item {
            ShardItem::Link { id, .. } => self.rows.item_of(id),
            ShardItem::Request { owner, key, .. } => self.records.item_of((*owner, key.clone())),
            ShardItem::Released { origin, .. } => ShardItem::Released {
                origin: *origin,
                count: self.released_of(shard, *origin),
            },
        };
        LinkItem { shard, item }
    }

    fn released_of(&self, shard: ShardId, origin: KeyOrigin) -> u64 {
        let released = self.rows.released_of(shard).into_iter();
        let counts = released.map(|item| match item {
            ShardItem::Released {
                origin: known,
                count,
            } if known == origin => count,
            _ => 0,
        });
        counts.sum()
    }

    fn write(&mut self, item: &LinkItem) {
        match &item.item {
            ShardItem::Link {
                id,
                stored,
                former_generation,
            } => {
                self.rows
                    .transfer(id, stored.as_deref(), *former_generation);
            }
            ShardItem::Request { owner, key, record } => {
                let name = (*owner, key.clone());
                self.rows.note_change(Changed::Request(name.clone()));
                self.records.import(name, record.as_deref());
            }
            ShardItem::Released { origin, count } => {
                self.rows.transfer_released(item.shard, *origin, *count);
            }
        }
    }

    /// The mover of a shard, or the copy, for which changes are remembered.
    fn follower(&self) -> Option<u64> {
        self.rows.tracked.values().copied().max()
    }

    fn require_follower(&self, follower: u64) -> PortResult<()> {
        match self.follower() == Some(follower) {
            true => Ok(()),
            false => Err(followed_by_another()),
        }
    }
}

fn followed_by_another() -> PortError {
    let mut refused = PortError::stale_epoch(BACKEND, OP_FOLLOW);
    refused.detail = "another copy follows changes, or a shard moves".to_owned();
    refused
}

#[async_trait]
impl Transfer<LinkItem> for MemoryLinkStore {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        let tables = locked(&self.tables);
        match Position::read(after) {
            Some(Position::Listed(after)) => Ok(tables.export_listed(after)),
            Some(Position::Others(after)) => Ok(tables.export_others(after)),
            None => {
                let detail = "the position is not one of this engine";
                Err(PortError::new(
                    ErrorKind::Invalid,
                    BACKEND,
                    OP_EXPORT,
                    detail,
                ))
            }
        }
    }

    async fn import_all(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        let mut tables = locked(&self.tables);
        let is_open = |item: &LinkItem| tables.seals.admit_shard(&self.map, item.shard);
        if !items.iter().all(is_open) {
            return Err(PortError::stale_epoch(BACKEND, "import links"));
        }
        let mut report = ImportReport::default();
        for item in items {
            if report.count(item, item.replaces(&tables.there(item))) {
                tables.write(item);
            }
        }
        Ok(report)
    }
}

#[async_trait]
impl LinkTransfer for MemoryLinkStore {
    async fn follow_changes(&self, follower: u64) -> PortResult<()> {
        let mut tables = locked(&self.tables);
        if tables.follower().is_some_and(|known| known != follower) {
            return Err(followed_by_another());
        }
        let all = ShardId::all().map(|shard| (shard, follower));
        tables.rows.tracked.extend(all);
        Ok(())
    }

    async fn followed_changes(&self, follower: u64) -> PortResult<FollowedChanges> {
        let tables = locked(&self.tables);
        tables.require_follower(follower)?;
        let changes: Vec<_> = tables.rows.changes.iter().take(ROWS_AT_ONCE).collect();
        let item = |changed: &Changed| match changed {
            Changed::Link(id) => tables.rows.item_of(id),
            Changed::Request(name) => tables.records.item_of(name.clone()),
        };
        let items = changes.iter().map(|(_, changed)| item(changed));
        Ok(FollowedChanges {
            items: items
                .filter_map(LinkItem::new)
                .chain(tables.released())
                .collect(),
            numbers: changes.iter().map(|(number, _)| **number).collect(),
            is_end: changes.len() < ROWS_AT_ONCE,
        })
    }

    async fn forget_followed(&self, numbers: &[i64]) -> PortResult<()> {
        let remembered = &mut locked(&self.tables).rows.changes;
        for number in numbers {
            remembered.remove(number);
        }
        Ok(())
    }

    async fn stop_following(&self, follower: Option<u64>) -> PortResult<()> {
        let mut tables = locked(&self.tables);
        match (tables.follower(), follower) {
            (None, _) => return Ok(()),
            (Some(known), Some(follower)) if known != follower => {
                return Err(followed_by_another());
            }
            (Some(known), None) if known < curt_core::ports::FOLLOWER_MIN => return Ok(()),
            _ => {}
        }
        tables.rows.tracked.clear();
        tables.rows.changes.clear();
        Ok(())
    }
}
