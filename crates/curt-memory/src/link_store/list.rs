use std::ops::Bound;

use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{ListOrder, ListPage, ListQuery};
use curt_core::{
    DomainId, EffectiveState, ErrorKind, Key, Link, LinkId, PortError, PortResult, UnixMillis,
};

use super::rows::{Row, Rows};
use crate::BACKEND;

/// Where a page ended: the last row that was read, shown or not.
struct Position {
    created_at: UnixMillis,
    id: LinkId,
}

pub(super) fn page(rows: &Rows, query: &ListQuery) -> PortResult<ListPage> {
    let after = query
        .cursor
        .as_deref()
        .map(|cursor| Position::parse(cursor, query.order))
        .transpose()?;
    let mut page = ListPage::default();
    let mut last: Option<&Row> = None;
    for (scanned, row) in walk(rows, query.order, after).enumerate() {
        if page.links.len() == query.limit || scanned == PAGE_ROWS_SCANNED_MAX {
            page.next = last.map(|row| Position::write(&row.link, query.order));
            break;
        }
        last = Some(row);
        if is_in_state(row, query) && matches(&row.link, query) {
            page.links.push(row.link.clone());
        }
    }
    Ok(page)
}

pub(super) fn cursor_behind(link: &Link, order: ListOrder) -> Box<str> {
    Position::write(link, order)
}

/// The rows after the position, in order.
fn walk<'a>(
    rows: &'a Rows,
    order: ListOrder,
    after: Option<Position>,
) -> Box<dyn Iterator<Item = &'a Row> + 'a> {
    let by_time = after.as_ref().map(|at| (at.created_at, at.id.clone()));
    let by_key = after.map(|at| at.id);
    let link = |(_, id): &(UnixMillis, LinkId)| rows.get(id);
    match order {
        ListOrder::OldestFirst => {
            let range = rows.by_creation().range((above(by_time), Bound::Unbounded));
            Box::new(range.filter_map(link))
        }
        ListOrder::NewestFirst => {
            let range = rows.by_creation().range((Bound::Unbounded, above(by_time)));
            Box::new(range.rev().filter_map(link))
        }
        ListOrder::KeyRising => {
            let range = rows.by_id().range((above(by_key), Bound::Unbounded));
            Box::new(range.map(|(_, row)| row))
        }
        ListOrder::KeyFalling => {
            let range = rows.by_id().range((Bound::Unbounded, above(by_key)));
            Box::new(range.rev().map(|(_, row)| row))
        }
    }
}

fn above<T>(position: Option<T>) -> Bound<T> {
    position.map_or(Bound::Unbounded, Bound::Excluded)
}

fn is_in_state(row: &Row, query: &ListQuery) -> bool {
    let Some(state) = row.link.effective_state(query.now) else {
        return false;
    };
    let state = state.with_clicks(row.link.max_clicks, row.clicks_spent);
    match query.state {
        Some(wanted) => state == wanted,
        None => state != EffectiveState::Deleted,
    }
}

fn matches(link: &Link, query: &ListQuery) -> bool {
    query.owner.is_none_or(|owner| link.owner == owner)
        && query
            .created_from
            .is_none_or(|from| link.created_at >= from)
        && query
            .created_before
            .is_none_or(|before| link.created_at < before)
        && query
            .expires_before
            .is_none_or(|before| link.expires_at.is_some_and(|at| at < before))
        && query.tags.iter().all(|tag| carries(link, tag))
        && query
            .search
            .as_deref()
            .is_none_or(|part| speaks_of(link, part))
}

fn carries(link: &Link, tag: &str) -> bool {
    link.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
}

fn speaks_of(link: &Link, part: &str) -> bool {
    contains(link.id.key.as_str(), part)
        || contains(link.target.as_str(), part)
        || link
            .title
            .as_deref()
            .is_some_and(|title| contains(title, part))
}

fn contains(text: &str, part: &str) -> bool {
    part.is_empty()
        || text
            .as_bytes()
            .windows(part.len())
            .any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

fn order_name(order: ListOrder) -> &'static str {
    match order {
        ListOrder::NewestFirst => "newest",
        ListOrder::OldestFirst => "oldest",
        ListOrder::KeyRising => "rising",
        ListOrder::KeyFalling => "falling",
    }
}

impl Position {
    fn write(link: &Link, order: ListOrder) -> Box<str> {
        format!(
            "{BACKEND}:{}:{}:{}:{}",
            order_name(order),
            link.created_at.0,
            link.id.domain.0,
            link.id.key
        )
        .into()
    }

    fn parse(cursor: &str, order: ListOrder) -> PortResult<Self> {
        Self::read(cursor, order).ok_or_else(|| {
            PortError::new(
                ErrorKind::Invalid,
                BACKEND,
                "list links",
                "the cursor is not one of this store and order; start again without it",
            )
        })
    }

    fn read(cursor: &str, order: ListOrder) -> Option<Self> {
        let mut parts = cursor.split(':');
        let mut next = || parts.next();
        let own = next()? == BACKEND && next()? == order_name(order);
        let created_at = UnixMillis(next()?.parse().ok()?);
        let domain = DomainId(next()?.parse().ok()?);
        let key = Key::parse(next()?).ok()?;
        (own && parts.next().is_none()).then(|| Self {
            created_at,
            id: LinkId::new(domain, key),
        })
    }
}
