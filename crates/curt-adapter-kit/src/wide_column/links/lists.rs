//! The lists that links are in, and where each stands there.

use curt_core::ports::{ListOrder, ListQuery};
use curt_core::{DomainId, Key, Link, LinkId, OwnerId, UnixMillis};

use crate::wide_column::ordered::{
    ListPlace, POSITION_BYTES_MAX, Span, of_sortable, sortable, successor,
};

/// A list of links. Widths of buckets keep a partition below some hundred thousand entries at the rates that curt is
/// made for (200 links a second), and the number of partitions that one page reads small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkList {
    AllByTime,
    AllByKey,
    OwnerByTime(OwnerId),
    OwnerByKey(OwnerId),
    /// Links by their end: expiry, or deletion.
    Ends,
    /// Tombstones whose keys may be used again, by the beginning of their quarantine.
    Tombstones,
}

/// Lists that all links go into by time: at any moment, all writers add to the same bucket.
pub(crate) const BY_TIME: &str = "links/time";
pub(crate) const ENDS: &str = "links/ends";
pub(crate) const TOMBSTONES: &str = "links/tombstones";

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const MONTH: i64 = 30 * 24 * HOUR;

impl LinkList {
    fn name(self) -> String {
        match self {
            Self::AllByTime => BY_TIME.to_owned(),
            Self::AllByKey => "links/key".to_owned(),
            Self::OwnerByTime(owner) => format!("links/time/{owner}"),
            Self::OwnerByKey(owner) => format!("links/key/{owner}"),
            Self::Ends => ENDS.to_owned(),
            Self::Tombstones => TOMBSTONES.to_owned(),
        }
    }

    /// How many milliseconds a bucket holds, in a list by time.
    fn width(self) -> Option<i64> {
        match self {
            Self::AllByTime => Some(HOUR),
            Self::OwnerByTime(_) => Some(MONTH),
            // What has ended is removed: a bucket must not hold more tombstones than one read may pass over.
            Self::Ends | Self::Tombstones => Some(MINUTE),
            Self::AllByKey | Self::OwnerByKey(_) => None,
        }
    }

    /// How many symbols the keys of a bucket share, in a list by key.
    fn shared_symbols(self) -> usize {
        match self {
            Self::AllByKey => 2,
            _ => 1,
        }
    }

    /// Where a link stands, at `at` in a list by time.
    pub(super) fn place(self, at: UnixMillis, id: &LinkId) -> ListPlace {
        let bucket = match self.width() {
            Some(width) => sortable(at.0.div_euclid(width)).to_vec(),
            None => {
                let key = id.key.as_bytes();
                let shared = self.shared_symbols().min(key.len());
                [&id.domain.0.to_be_bytes()[..], &key[..shared]].concat()
            }
        };
        ListPlace {
            list: self.name(),
            bucket,
            position: self.position(at, id),
        }
    }

    fn position(self, at: UnixMillis, id: &LinkId) -> Vec<u8> {
        let (domain, key) = (id.domain.0.to_be_bytes(), id.key.as_bytes());
        match self.width() {
            Some(_) => [&sortable(at.0)[..], &domain, key].concat(),
            None => [&domain[..], key].concat(),
        }
    }

    /// The link that stands there, and its time. `None`: no list of links has such a position.
    pub(super) fn link_at(self, position: &[u8]) -> Option<(UnixMillis, LinkId)> {
        let (at, rest) = match self.width() {
            Some(_) => {
                let (at, rest) = position.split_first_chunk::<8>()?;
                (UnixMillis(of_sortable(*at)), rest)
            }
            None => (UnixMillis(0), position),
        };
        let (domain, key) = rest.split_first_chunk::<4>()?;
        let key = Key::parse(str::from_utf8(key).ok()?).ok()?;
        let domain = DomainId(u32::from_be_bytes(*domain));
        Some((at, LinkId::new(domain, key)))
    }

    /// The whole list up to and with `until`, oldest first.
    pub(super) fn until(self, until: UnixMillis) -> Span {
        let (low, high) = (UnixMillis(i64::MIN), until);
        self.between(low, Some(high), true)
    }

    /// The list from `from` to `to`, both included, in a list by time; all of it in a list by key.
    fn between(self, from: UnixMillis, to: Option<UnixMillis>, is_rising: bool) -> Span {
        let end = vec![u8::MAX; POSITION_BYTES_MAX];
        let (buckets, positions) = match (self.width(), to) {
            (Some(width), to) => {
                let bucket = |at: UnixMillis| sortable(at.0.div_euclid(width)).to_vec();
                // Nothing else has the time alone as its position: the links of that time come after it.
                let after = |at: UnixMillis| [&sortable(at.0)[..], &[u8::MAX; 80]].concat();
                let last = to.map(|to| (successor(&bucket(to)), after(to)));
                let (last_bucket, last) = last.unwrap_or_else(|| (end.clone(), end.clone()));
                let first = sortable(from.0).to_vec();
                ((bucket(from), last_bucket), (first, last))
            }
            (None, _) => ((Vec::new(), end.clone()), (Vec::new(), end)),
        };
        Span {
            list: self.name(),
            buckets,
            positions,
            is_rising,
        }
    }

    /// The list that answers a query, and the part of it that the query and what its page follows leave.
    pub(super) fn of_query(query: &ListQuery, after: Option<&[u8]>) -> (Self, Span) {
        let (is_by_time, is_rising) = match query.order {
            ListOrder::NewestFirst => (true, false),
            ListOrder::OldestFirst => (true, true),
            ListOrder::KeyRising => (false, true),
            ListOrder::KeyFalling => (false, false),
        };
        let list = match (query.owner, is_by_time) {
            (None, true) => Self::AllByTime,
            (None, false) => Self::AllByKey,
            (Some(owner), true) => Self::OwnerByTime(owner),
            (Some(owner), false) => Self::OwnerByKey(owner),
        };
        let from = query.created_from.unwrap_or(UnixMillis(i64::MIN));
        let to = query
            .created_before
            .map(|at| UnixMillis(at.0.saturating_sub(1)));
        let mut span = list.between(from, to, is_rising);
        if let Some((at, id)) = after.and_then(|after| list.link_at(after)) {
            let ListPlace {
                bucket, position, ..
            } = list.place(at, &id);
            match is_rising {
                true => {
                    span.buckets.0 = bucket.max(span.buckets.0);
                    span.positions.0 = position.max(span.positions.0);
                }
                false => {
                    span.buckets.1 = successor(&bucket).min(span.buckets.1);
                    span.positions.1 = position.min(span.positions.1);
                }
            }
        }
        (list, span)
    }
}

/// The lists that a link is in from its creation on, whatever becomes of it.
pub(super) fn places_of(link: &Link) -> Vec<ListPlace> {
    let mut places = places_of_owner(link);
    places.push(LinkList::AllByTime.place(link.created_at, &link.id));
    places.push(LinkList::AllByKey.place(link.created_at, &link.id));
    places.extend(end_place(link));
    places
}

/// Those of its owner.
pub(super) fn places_of_owner(link: &Link) -> Vec<ListPlace> {
    let lists = [
        LinkList::OwnerByTime(link.owner),
        LinkList::OwnerByKey(link.owner),
    ];
    let place = |list: LinkList| list.place(link.created_at, &link.id);
    lists.map(place).into()
}

/// Where the link stands among those that end, if it does.
pub(super) fn end_place(link: &Link) -> Option<ListPlace> {
    let at = end_of(link)?;
    Some(LinkList::Ends.place(at, &link.id))
}

/// When the link ended or will end.
pub(super) fn end_of(link: &Link) -> Option<UnixMillis> {
    link.ended_at(UnixMillis(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(domain: u32, key: &str) -> LinkId {
        LinkId::new(DomainId(domain), Key::parse(key).unwrap())
    }

    #[test]
    fn places_are_in_the_order_of_links_and_lead_back() {
        let times = [i64::MIN, -1, 0, 1, 3_600_000, i64::MAX];
        let ids = [
            id(0, "A"),
            id(0, "Aa"),
            id(0, "B"),
            id(1, "A"),
            id(u32::MAX, "z"),
        ];
        for list in [
            LinkList::AllByTime,
            LinkList::OwnerByTime(OwnerId(1)),
            LinkList::Ends,
        ] {
            let all = times
                .iter()
                .flat_map(|at| ids.iter().map(move |id| (UnixMillis(*at), id)));
            let places: Vec<_> = all.map(|(at, id)| (list.place(at, id), at, id)).collect();
            assert!(places.is_sorted_by(|a, b| a.0.position < b.0.position));
            assert!(places.is_sorted_by(|a, b| a.0.bucket <= b.0.bucket));
            for (place, at, id) in places {
                assert_eq!(list.link_at(&place.position), Some((at, id.clone())));
            }
        }
        for list in [LinkList::AllByKey, LinkList::OwnerByKey(OwnerId(1))] {
            let places = ids.iter().map(|id| list.place(UnixMillis(7), id));
            let places: Vec<_> = places.collect();
            assert!(places.is_sorted_by(|a, b| a.position < b.position));
            assert!(places.is_sorted_by(|a, b| a.bucket <= b.bucket));
        }
    }
}
