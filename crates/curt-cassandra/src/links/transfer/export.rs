//! Everything, part by part: links by their age, as lists show them, then what else rows say, in the order of the hash that
//! places them, then requests, and then the sums of released keys.

use curt_core::ports::{LinkItem, ShardItem, TransferPart};
use curt_core::{DomainId, ErrorKind, Key, LinkId, LinkState, PortError, PortResult, UnixMillis};
use data_encoding::BASE64URL_NOPAD;
use scylla::DeserializeRow;
use std::collections::BTreeMap;

use super::{OP_EXPORT, cql, item_of};
use crate::failure::{BACKEND, corrupt};
use crate::links::index::is_listed_at;
use crate::links::lists::LinkList;
use crate::links::record::{RELEASED, Stored, small};
use crate::links::{CassandraLinks, cql as links_cql};
use crate::together::together;

/// Links of a part, each of which is one read.
const LINKS_AT_ONCE: usize = 1_000;
/// Rows that one statement reads.
pub(super) const ROWS_AT_ONCE: i32 = 5_000;

/// Where an export goes on.
enum Position {
    /// Behind a place in the list of all links by their age.
    Aged(Option<Vec<u8>>),
    /// Behind a hash.
    Others(i64),
    Requests(i64),
    Released,
}

impl Position {
    fn read(text: Option<&str>) -> PortResult<Self> {
        let Some(text) = text else {
            return Ok(Self::Aged(None));
        };
        let found = text
            .split_at_checked(1)
            .and_then(|(kind, rest)| match (kind, rest) {
                ("a", rest) => {
                    let place = BASE64URL_NOPAD.decode(rest.as_bytes()).ok()?;
                    let is_place = LinkList::AllByTime.link_at(&place).is_some();
                    is_place.then_some(Self::Aged(Some(place)))
                }
                ("h", hash) => hash.parse().ok().map(Self::Others),
                ("q", hash) => hash.parse().ok().map(Self::Requests),
                ("z", "") => Some(Self::Released),
                _ => None,
            });
        let detail = "the position is not one of this database";
        found.ok_or_else(|| PortError::new(ErrorKind::Invalid, BACKEND, OP_EXPORT, detail))
    }

    fn to_text(&self) -> Box<str> {
        match self {
            Self::Aged(place) => {
                let place = place.as_deref().unwrap_or_default();
                format!("a{}", BASE64URL_NOPAD.encode(place))
            }
            Self::Others(hash) => format!("h{hash}"),
            Self::Requests(hash) => format!("q{hash}"),
            Self::Released => "z".to_owned(),
        }
        .into()
    }
}

/// What is read of every row to find out which are wanted.
#[derive(DeserializeRow)]
pub(super) struct ScannedRow {
    pub(super) hash: i64,
    namespace: String,
    domain: i64,
    key: String,
    state: i8,
    pub(super) released: Option<BTreeMap<i8, i64>>,
}

#[derive(DeserializeRow)]
struct ScannedRequest {
    hash: i64,
    namespace: String,
    owner: i64,
    key: String,
}

/// What the name of a row says.
pub(super) enum RowName {
    Link(LinkId),
    /// Sums of released keys of the shard with this number.
    Totals(u16),
}

impl ScannedRow {
    pub(super) fn name(&self) -> PortResult<RowName> {
        if self.domain < 0 {
            let shard = self.key.parse();
            return shard
                .map(RowName::Totals)
                .map_err(|_| corrupt(OP_EXPORT, "the number of a shard"));
        }
        let key = Key::parse(&self.key).map_err(|error| corrupt(OP_EXPORT, error))?;
        let domain = DomainId(small(OP_EXPORT, self.domain)?);
        Ok(RowName::Link(LinkId::new(domain, key)))
    }

    /// Whether the list of links by their age lacks it.
    fn is_unlisted(&self) -> bool {
        let state = LinkState::from_stored(self.state.cast_unsigned());
        self.state == RELEASED || !state.is_some_and(LinkState::is_kept)
    }
}

impl CassandraLinks {
    pub(super) async fn export(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        let (items, next) = match Position::read(after)? {
            Position::Aged(after) => {
                let read = self.export_aged(after.as_deref());
                self.engine.list(OP_EXPORT, read).await?
            }
            Position::Others(hash) => {
                let read = self.export_others(hash);
                self.engine.list(OP_EXPORT, read).await?
            }
            Position::Requests(hash) => {
                let read = self.export_requests(hash);
                self.engine.list(OP_EXPORT, read).await?
            }
            Position::Released => (self.released_items().await?, None),
        };
        let next = next.map(|next| next.to_text());
        Ok(TransferPart { items, next })
    }

    async fn export_aged(
        &self,
        after: Option<&[u8]>,
    ) -> PortResult<(Vec<LinkItem>, Option<Position>)> {
        let list = LinkList::AllByTime;
        let mut span = list.until(UnixMillis(i64::MAX));
        if let Some((at, id)) = after.and_then(|after| list.link_at(after)) {
            span.follow(&list.place(at, &id));
        }
        let entries = self.lists.read(OP_EXPORT, &span, LINKS_AT_ONCE).await?;
        let reads = entries.entries.iter().map(|entry| async {
            let position = &entry.place.position;
            let Some((_, id)) = list.link_at(position) else {
                return Ok(None);
            };
            let stored = self.find(OP_EXPORT, links_cql::GET, &id).await?;
            let is_here = |stored: &Stored| match stored {
                Stored::Link(row) => is_listed_at(list, position, &row.link),
                Stored::Released { .. } => false,
            };
            let stored = stored.filter(is_here);
            Ok::<_, PortError>(stored.map(|stored| item_of(&id, Some(stored))))
        });
        let items = together(reads).await?.into_iter().flatten();
        let next = match (entries.is_all, entries.entries.last()) {
            (false, Some(last)) => Position::Aged(Some(last.place.position.clone())),
            _ => Position::Others(i64::MIN),
        };
        Ok((items.filter_map(LinkItem::new).collect(), Some(next)))
    }

    /// Tombstones, seeds and released keys.
    async fn export_others(&self, hash: i64) -> PortResult<(Vec<LinkItem>, Option<Position>)> {
        let (rows, last) = self.scan_rows(hash).await?;
        let next = last.map_or(Position::Requests(i64::MIN), Position::Others);
        let mut ids = Vec::new();
        for row in rows.iter().filter(|row| row.is_unlisted()) {
            if let RowName::Link(id) = row.name()? {
                ids.push(id);
            }
        }
        let reads = ids.iter().map(|id| async {
            let stored = self.find(OP_EXPORT, links_cql::GET, id).await?;
            Ok::<_, PortError>(stored.map(|stored| item_of(id, Some(stored))))
        });
        let items = together(reads).await?.into_iter().flatten();
        Ok((items.filter_map(LinkItem::new).collect(), Some(next)))
    }

    /// Rows of this namespace behind a hash, and up to which one they were read. `None`: to the end.
    pub(super) async fn scan_rows(&self, hash: i64) -> PortResult<(Vec<ScannedRow>, Option<i64>)> {
        let values = (hash, i64::MAX, ROWS_AT_ONCE);
        let mut rows: Vec<ScannedRow> = self.engine.rows(OP_EXPORT, cql::SCAN, values).await?;
        let is_full = rows.len() == ROWS_AT_ONCE.unsigned_abs() as usize;
        let last = rows.last().map(|row| row.hash).filter(|_| is_full);
        rows.retain(|row| row.namespace == *self.namespace);
        Ok((rows, last))
    }

    async fn export_requests(&self, hash: i64) -> PortResult<(Vec<LinkItem>, Option<Position>)> {
        let values = (hash, i64::MAX, ROWS_AT_ONCE);
        let scan = self.engine.rows(OP_EXPORT, cql::SCAN_REQUESTS, values);
        let rows: Vec<ScannedRequest> = scan.await?;
        let is_full = rows.len() == ROWS_AT_ONCE.unsigned_abs() as usize;
        let last = rows.last().filter(|_| is_full);
        let next = last.map_or(Position::Released, |row| Position::Requests(row.hash));
        let own = rows.iter().filter(|row| row.namespace == *self.namespace);
        let reads = own.map(|row| self.find_request_item(row.owner, &row.key));
        let items = together(reads).await?.into_iter();
        // One that was forgotten meanwhile is nothing.
        let items = items.filter(|item| !matches!(item, ShardItem::Request { record: None, .. }));
        Ok((items.filter_map(LinkItem::new).collect(), Some(next)))
    }
}
