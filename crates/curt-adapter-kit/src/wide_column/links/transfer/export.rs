//! Everything, part by part: links by their age, as lists show them, then what else rows say, in the order of the engine,
//! then requests by their age, and then the sums of released keys.

use curt_core::ports::{LinkItem, ShardItem, TransferPart};
use curt_core::{ErrorKind, LinkId, LinkState, PortError, PortResult, UnixMillis};
use data_encoding::BASE64URL_NOPAD;

use super::{OP_EXPORT, item_of};
use crate::wide_column::links::WideLinks;
use crate::wide_column::links::idempotency::{all_requests, place, request_at};
use crate::wide_column::links::index::is_listed_at;
use crate::wide_column::links::lists::LinkList;
use crate::wide_column::links::record::{RELEASED, RowName, ScannedLink, Stored};
use crate::wide_column::{ReadMode, together};

/// Links or requests of a part, each of which is read.
const ITEMS_AT_ONCE: usize = 1_000;

/// Where an export goes on.
enum Position {
    /// Behind a place in the list of all links by their age.
    Aged(Option<Vec<u8>>),
    /// Behind a row, in an order of the engine.
    Others(Option<Box<str>>),
    /// Behind a place in the list of requests.
    Requests(Option<Vec<u8>>),
    Released,
}

impl Position {
    fn read(text: Option<&str>) -> Option<Self> {
        let Some(text) = text else {
            return Some(Self::Aged(None));
        };
        let (kind, rest) = text.split_at_checked(1)?;
        let place = || BASE64URL_NOPAD.decode(rest.as_bytes()).ok();
        match (kind, rest) {
            ("h", "") => Some(Self::Others(None)),
            ("h", row) => Some(Self::Others(Some(row.into()))),
            ("q", "") => Some(Self::Requests(None)),
            ("z", "") => Some(Self::Released),
            ("a", _) => {
                let is_place = |place: &Vec<u8>| LinkList::AllByTime.link_at(place).is_some();
                place()
                    .filter(is_place)
                    .map(|place| Self::Aged(Some(place)))
            }
            ("q", _) => {
                let is_place = |place: &Vec<u8>| request_at(place).is_some();
                let place = place().filter(is_place);
                place.map(|place| Self::Requests(Some(place)))
            }
            _ => None,
        }
    }

    fn to_text(&self) -> Box<str> {
        let encode = |place: &Option<Vec<u8>>| {
            let place = place.as_deref().unwrap_or_default();
            BASE64URL_NOPAD.encode(place)
        };
        match self {
            Self::Aged(place) => format!("a{}", encode(place)),
            Self::Others(row) => format!("h{}", row.as_deref().unwrap_or_default()),
            Self::Requests(place) => format!("q{}", encode(place)),
            Self::Released => "z".to_owned(),
        }
        .into()
    }
}

impl ScannedLink {
    /// The link, if the list of links by their age lacks it.
    fn unlisted(self) -> Option<LinkId> {
        let state = LinkState::from_stored(self.state.cast_unsigned());
        let is_listed = self.state != RELEASED && state.is_some_and(LinkState::is_kept);
        match self.name {
            RowName::Link(id) if !is_listed => Some(id),
            _ => None,
        }
    }
}

impl WideLinks {
    pub(super) async fn export(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        let position = Position::read(after).ok_or_else(|| {
            let detail = "the position is not one of this database";
            PortError::new(
                ErrorKind::Invalid,
                self.deadlines.backend,
                OP_EXPORT,
                detail,
            )
        })?;
        let (items, next) = match position {
            Position::Aged(after) => {
                let read = self.export_aged(after.as_deref());
                self.deadlines.list(OP_EXPORT, read).await?
            }
            Position::Others(after) => {
                let read = self.export_others(after.as_deref());
                self.deadlines.list(OP_EXPORT, read).await?
            }
            Position::Requests(after) => {
                let read = self.export_requests(after.as_deref());
                self.deadlines.list(OP_EXPORT, read).await?
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
        let read = self.read_entries(OP_EXPORT, list, &span, ITEMS_AT_ONCE);
        let (entries, links) = read.await?;
        let next = match (entries.is_all, entries.entries.last()) {
            (false, Some(last)) => Position::Aged(Some(last.place.position.clone())),
            _ => Position::Others(None),
        };
        let found = entries.entries.iter().zip(links);
        let items = found.filter_map(|(entry, row)| {
            let row = row.filter(|row| is_listed_at(list, &entry.place.position, &row.link))?;
            let id = row.link.id.clone();
            LinkItem::new(item_of(&id, Some(Stored::Link(Box::new(row)))))
        });
        Ok((items.collect(), Some(next)))
    }

    /// Tombstones, seeds and released keys.
    async fn export_others(
        &self,
        after: Option<&str>,
    ) -> PortResult<(Vec<LinkItem>, Option<Position>)> {
        let part = self.rows.scan(OP_EXPORT, after, true).await?;
        let next = match part.next {
            Some(row) => Position::Others(Some(row)),
            None => Position::Requests(None),
        };
        let ids = part.rows.into_iter().filter_map(ScannedLink::unlisted);
        let ids: Vec<LinkId> = ids.collect();
        let found = self.rows.get_many(OP_EXPORT, &ids).await?;
        let items = ids.iter().zip(found).filter_map(|(id, stored)| {
            let stored = stored?;
            LinkItem::new(item_of(id, Some(stored)))
        });
        Ok((items.collect(), Some(next)))
    }

    async fn export_requests(
        &self,
        after: Option<&[u8]>,
    ) -> PortResult<(Vec<LinkItem>, Option<Position>)> {
        let mut span = all_requests();
        if let Some((at, owner, key)) = after.and_then(request_at) {
            span.follow(&place(at, owner, key));
        }
        let entries = self.lists.read(OP_EXPORT, &span, ITEMS_AT_ONCE).await?;
        let next = match (entries.is_all, entries.entries.last()) {
            (false, Some(last)) => Position::Requests(Some(last.place.position.clone())),
            _ => Position::Released,
        };
        let reads = entries.entries.iter().map(|entry| async {
            let Some((at, owner, key)) = request_at(&entry.place.position) else {
                return Ok(None);
            };
            let found = self
                .requests
                .get(OP_EXPORT, owner, key, ReadMode::Acknowledged);
            // An entry of another time is of a request that came again, or was forgotten.
            let record = found.await?.filter(|record| record.plan.at == at);
            let item = record.map(|record| ShardItem::Request {
                owner,
                key: key.into(),
                record: Some(Box::new(record)),
            });
            Ok::<_, PortError>(item)
        });
        let items = together(reads).await?.into_iter().flatten();
        Ok((items.filter_map(LinkItem::new).collect(), Some(next)))
    }
}
