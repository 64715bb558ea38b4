//! Positions in a list, and the text in which a client carries them to the next page.

use curt_core::ports::{ListOrder, ListQuery};
use curt_core::{DomainId, Key, LinkId};

use curt_adapter_kit::page_cursor;

/// Where a page begins. Links are listed in the order in which they came to be, or in that of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Behind everything that `after` stands for; `None`: at the beginning.
    ByAge {
        newest_first: bool,
        after: Option<i64>,
    },
    ByKey {
        rising: bool,
        after: Option<LinkId>,
    },
}

impl Position {
    /// Where the query wants its page to begin. Fails on a cursor that this list did not give.
    pub(super) fn of_query(query: &ListQuery) -> Result<Self, ()> {
        let after = match &query.cursor {
            Some(cursor) => Some(page_cursor::unseal(order_name(query.order), cursor).ok_or(())?),
            None => None,
        };
        match query.order {
            ListOrder::NewestFirst | ListOrder::OldestFirst => Ok(Self::ByAge {
                newest_first: query.order == ListOrder::NewestFirst,
                after: after.map(str::parse).transpose().map_err(drop)?,
            }),
            ListOrder::KeyRising | ListOrder::KeyFalling => Ok(Self::ByKey {
                rising: query.order == ListOrder::KeyRising,
                after: after.map(parse_id).transpose()?,
            }),
        }
    }
}

/// The cursor for what follows `after`.
pub(super) fn cursor(order: ListOrder, after: &str) -> Box<str> {
    page_cursor::seal(order_name(order), after)
}

/// Part of the cursors that clients hold.
fn order_name(order: ListOrder) -> &'static str {
    match order {
        ListOrder::NewestFirst => "sqlite-new",
        ListOrder::OldestFirst => "sqlite-old",
        ListOrder::KeyRising => "sqlite-az",
        ListOrder::KeyFalling => "sqlite-za",
    }
}

fn parse_id(text: &str) -> Result<LinkId, ()> {
    let (domain, key) = text.split_once('/').ok_or(())?;
    let domain = DomainId(domain.parse().map_err(drop)?);
    Ok(LinkId::new(domain, Key::parse(key).map_err(drop)?))
}
