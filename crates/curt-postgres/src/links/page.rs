//! Positions in a list, and the text in which a client carries them to the next page.

use curt_core::ports::{ListOrder, ListQuery};
use curt_core::{DomainId, Key, Link, LinkId, UnixMillis};

use curt_adapter_kit::page_cursor;

/// A link that pages end at, whether or not it is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) created_at: UnixMillis,
    pub(super) id: LinkId,
}

impl Position {
    pub(super) fn of(link: &Link) -> Self {
        Self {
            created_at: link.created_at,
            id: link.id.clone(),
        }
    }

    /// What the query's page follows; `None`: it is the first. Fails on a cursor that this list did not give.
    pub(super) fn before_page(query: &ListQuery) -> Result<Option<Self>, ()> {
        let Some(cursor) = &query.cursor else {
            return Ok(None);
        };
        Self::read(query.order, cursor).ok_or(()).map(Some)
    }

    pub(super) fn cursor(&self, order: ListOrder) -> Box<str> {
        let position = format!("{}:{}", self.created_at.0, self.id);
        page_cursor::seal(order_name(order), &position)
    }

    fn read(order: ListOrder, cursor: &str) -> Option<Self> {
        let rest = page_cursor::unseal(order_name(order), cursor)?;
        let (created_at, id) = rest.split_once(':')?;
        let (domain, key) = id.split_once('/')?;
        Some(Self {
            created_at: UnixMillis(created_at.parse().ok()?),
            id: LinkId::new(DomainId(domain.parse().ok()?), Key::parse(key).ok()?),
        })
    }
}

/// Part of the cursors that clients hold.
fn order_name(order: ListOrder) -> &'static str {
    match order {
        ListOrder::NewestFirst => "postgres-new",
        ListOrder::OldestFirst => "postgres-old",
        ListOrder::KeyRising => "postgres-az",
        ListOrder::KeyFalling => "postgres-za",
    }
}
