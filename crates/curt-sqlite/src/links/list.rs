//! Pages of links.
//!
//! Rows are read in the order of the list and judged here, so that no page reads more than
//! [`PAGE_ROWS_SCANNED_MAX`] of them. Which rows are read at all depends on the query:
//!
//! - by age: the table itself, or one owner's part of it, or the links with the query's first tag;
//! - by key: the index over keys. An owner with few links would be a needle in it, so those links are all read and
//!   sorted instead.

use curt_core::limits::{PAGE_LINKS_MAX, PAGE_ROWS_SCANNED_MAX};
use curt_core::ports::{ListPage, ListQuery};
use curt_core::{EffectiveState, LinkId, LinkState, OwnerId, UnixMillis};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::page::{self, Position};
use super::record::{self, SELECT, StoredLink};
use super::spend;
use crate::decode;

pub(super) fn list(
    connection: &Connection,
    query: &ListQuery,
    position: Position,
) -> rusqlite::Result<ListPage> {
    match position {
        Position::ByAge {
            newest_first,
            after,
        } => by_age(connection, query, newest_first, after),
        Position::ByKey { rising, after } => match query.owner {
            Some(owner) if has_few_links(connection, owner)? => {
                sorted_by_key(connection, query, owner, rising, after)
            }
            _ => by_key(connection, query, rising, after),
        },
    }
}

fn by_age(
    connection: &Connection,
    query: &ListQuery,
    newest_first: bool,
    after: Option<i64>,
) -> rusqlite::Result<ListPage> {
    let (beyond, direction) = if newest_first {
        ("<", "DESC")
    } else {
        (">", "ASC")
    };
    let mut sql = SELECT.to_owned();
    let mut values: Vec<Value> = Vec::new();
    let row_id = match query.tags.first() {
        Some(tag) => {
            sql.push_str("JOIN link_tags ON link_tags.link = links.id WHERE link_tags.tag = ? ");
            values.push(Value::Text(tag.to_string()));
            "link_tags.link"
        }
        None => {
            sql.push_str("WHERE 1 ");
            "links.id"
        }
    };
    if let Some(owner) = query.owner {
        sql.push_str("AND owner = ? ");
        values.push(Value::Integer(owner.0.cast_signed()));
    }
    if let Some(after) = after {
        sql.push_str(&format!("AND {row_id} {beyond} ? "));
        values.push(Value::Integer(after));
    }
    sql.push_str(&format!("ORDER BY {row_id} {direction}"));
    fill(connection, query, &sql, values, |row| {
        Ok(row.get::<_, i64>(record::ROW_ID)?.to_string())
    })
}

fn by_key(
    connection: &Connection,
    query: &ListQuery,
    rising: bool,
    after: Option<LinkId>,
) -> rusqlite::Result<ListPage> {
    let (beyond, direction) = if rising { (">", "ASC") } else { ("<", "DESC") };
    let mut sql = format!("{SELECT} INDEXED BY links_by_key ");
    let mut values: Vec<Value> = Vec::new();
    if let Some(after) = after {
        sql.push_str(&format!("WHERE (domain, key) {beyond} (?, ?) "));
        values.push(Value::Integer(after.domain.0.into()));
        values.push(Value::Text(after.key.to_string()));
    }
    sql.push_str(&format!("ORDER BY domain {direction}, key {direction}"));
    fill(connection, query, &sql, values, |row| {
        Ok(record::id_of(row)?.to_string())
    })
}

/// Reads rows in order until the page is full and one more link is known to follow, or enough rows have been read.
fn fill(
    connection: &Connection,
    query: &ListQuery,
    sql: &str,
    values: Vec<Value>,
    position_of: impl Fn(&Row<'_>) -> rusqlite::Result<String>,
) -> rusqlite::Result<ListPage> {
    let wanted = Filter::of(connection, query);
    let limit = page_limit(query);
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut page = ListPage::default();
    let mut position = None;
    let mut scanned = 0;
    while let Some(row) = rows.next()? {
        let fits = wanted.fits(row)?;
        if fits && page.links.len() == limit {
            break;
        }
        if fits || scanned + 1 == PAGE_ROWS_SCANNED_MAX {
            position = Some(position_of(row)?);
        }
        if fits {
            page.links.push(record::stored_of(row)?.link);
        }
        scanned += 1;
        if scanned == PAGE_ROWS_SCANNED_MAX {
            break;
        }
    }
    let ended = rows.as_ref().is_none();
    if !ended {
        page.next = position.map(|position| page::cursor(query.order, &position));
    }
    Ok(page)
}

fn page_limit(query: &ListQuery) -> usize {
    query.limit.clamp(1, PAGE_LINKS_MAX)
}

fn has_few_links(connection: &Connection, owner: OwnerId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT count(*) <= ?2 FROM (SELECT 1 FROM links INDEXED BY links_by_owner WHERE owner = ?1 LIMIT ?2 + 1)",
        )?
        .query_row(
            (owner.0.cast_signed(), u32::try_from(PAGE_ROWS_SCANNED_MAX).unwrap_or(u32::MAX)),
            |row| row.get(0),
        )
}

/// The page of an owner whose links can all be read at once.
fn sorted_by_key(
    connection: &Connection,
    query: &ListQuery,
    owner: OwnerId,
    rising: bool,
    after: Option<LinkId>,
) -> rusqlite::Result<ListPage> {
    let wanted = Filter::of(connection, query);
    let limit = page_limit(query);
    let mut statement = connection.prepare_cached(&format!(
        "{SELECT} INDEXED BY links_by_owner WHERE owner = ?1"
    ))?;
    let mut rows = statement.query([owner.0.cast_signed()])?;
    let mut found: Vec<StoredLink> = Vec::new();
    let in_order = |left: &StoredLink, right: &StoredLink| {
        let rising_order = left.link.id.cmp(&right.link.id);
        if rising {
            rising_order
        } else {
            rising_order.reverse()
        }
    };
    while let Some(row) = rows.next()? {
        if !wanted.fits(row)? {
            continue;
        }
        let id = record::id_of(row)?;
        let follows = after
            .as_ref()
            .is_none_or(|after| if rising { id > *after } else { id < *after });
        if follows {
            found.push(record::stored_of(row)?);
        }
        // Only the first links are kept, so that memory is bounded by the page and not by the owner.
        if found.len() > 4 * PAGE_LINKS_MAX {
            found.sort_unstable_by(in_order);
            found.truncate(limit + 1);
        }
    }
    found.sort_unstable_by(in_order);
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more);
    let next = last.map(|last| page::cursor(query.order, &last.link.id.to_string()));
    Ok(ListPage {
        links: found.into_iter().map(|stored| stored.link).collect(),
        next,
    })
}

/// What a query asks of each row.
struct Filter<'a> {
    connection: &'a Connection,
    query: &'a ListQuery,
}

impl<'a> Filter<'a> {
    fn of(connection: &'a Connection, query: &'a ListQuery) -> Self {
        Self { connection, query }
    }

    fn fits(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let query = self.query;
        if !self.is_in_state(row)? {
            return Ok(false);
        }
        let owner: i64 = row.get(3)?;
        let created_at: i64 = row.get(8)?;
        let expires_at: Option<i64> = row.get(10)?;
        let fits = query
            .owner
            .is_none_or(|wanted| wanted.0.cast_signed() == owner)
            && query.created_from.is_none_or(|from| created_at >= from.0)
            && query
                .created_before
                .is_none_or(|before| created_at < before.0)
            && query
                .expires_before
                .is_none_or(|before| expires_at.is_some_and(|at| at < before.0));
        Ok(fits && self.holds_text(row)? && self.holds_tags(row)?)
    }

    fn is_in_state(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let query = self.query;
        let stored = decode::number(row, 4, LinkState::from_stored)?;
        let time = |column| {
            row.get::<_, Option<i64>>(column)
                .map(|at| at.map(UnixMillis))
        };
        let Some(state) = EffectiveState::at(query.now, stored, time(10)?, time(11)?) else {
            return Ok(false);
        };
        let Some(wanted) = query.state else {
            return Ok(state != EffectiveState::Deleted);
        };
        let limit: Option<i64> = row.get(12)?;
        let state = match limit {
            Some(most) if state.asks_clicks() => {
                let spent = spend::spent_by(self.connection, row.get(record::ROW_ID)?)?;
                state.with_clicks(Some(most.cast_unsigned()), spent)
            }
            _ => state,
        };
        Ok(state == wanted)
    }

    fn holds_text(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let Some(text) = &self.query.search else {
            return Ok(true);
        };
        for column in [1, 2, 18] {
            let value = row.get_ref(column)?.as_str_or_null()?;
            if value.is_some_and(|value| contains_ignoring_case(value, text)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn holds_tags(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        if self.query.tags.is_empty() {
            return Ok(true);
        }
        let tags = record::tags_of(row)?;
        Ok(self
            .query
            .tags
            .iter()
            .all(|wanted| tags.iter().any(|tag| tag.eq_ignore_ascii_case(wanted))))
    }
}

fn contains_ignoring_case(text: &str, part: &str) -> bool {
    part.is_empty()
        || text
            .as_bytes()
            .windows(part.len())
            .any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}
