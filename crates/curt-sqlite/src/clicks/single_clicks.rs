//! Single clicks, in the order of time.

use std::collections::HashMap;
use std::ops::Range;

use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{ClickPage, ClickQuery};
use curt_core::{Click, ClickClass, ClickOutcome, ClickSubject, LinkId, OwnerId, UnixMillis};
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::subjects::{self, LINK_KIND, SubjectNumber};
use crate::decode;
use crate::tags::{join_tags, split_tags};
use curt_adapter_kit::click_days::link_of_number;
use curt_adapter_kit::page_cursor;

/// Bits of a row id that number the clicks of one millisecond. When they do not suffice, the click moves to the next.
const NUMBER_BITS: u32 = 15;
/// Part of the cursors that clients hold.
const LIST: &str = "sqlite-clicks";

const COLUMNS: &str = "v.id, s.kind, s.number, s.name, v.owner, v.asked, v.tags, v.class, v.country, v.browser, \
                       v.system, v.device, v.referrer, v.language, v.address";

fn first_id(at: UnixMillis) -> i64 {
    at.0.clamp(0, UnixMillis::MAX.0) << NUMBER_BITS
}

/// About what a row takes, with its entries in the indexes; the same as [`bytes_of`] says.
pub(crate) const CLICK_BYTES: &str = "100 + octet_length(coalesce(asked, '')) \
     + octet_length(coalesce(tags, '')) + octet_length(country) + octet_length(browser) + octet_length(system) \
     + octet_length(device) + octet_length(referrer) + octet_length(language) + octet_length(coalesce(address, ''))";
/// Beyond the texts: the row itself is 44, its index entries are 42, and pages are not quite full.
const ROW_BYTES: usize = 100;

pub(super) fn add(connection: &Connection, clicks: &[Click]) -> rusqlite::Result<()> {
    let mut subjects = HashMap::new();
    let mut bytes = 0;
    for click in clicks {
        let subject = subject_of(click);
        let number = match subjects.get(&subject) {
            Some(number) => *number,
            None => {
                let number = subjects::find_or_add(connection, &subject)?;
                subjects.insert(subject, number);
                number
            }
        };
        bytes += insert(connection, number, click)?;
    }
    grow(connection, i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// Under what the click is found.
pub(super) fn subject_of(click: &Click) -> ClickSubject {
    match &click.outcome {
        ClickOutcome::Link(id, generation) => ClickSubject::Link(id.clone(), *generation),
        ClickOutcome::Absent(_) | ClickOutcome::BaseUrl => ClickSubject::Orphans,
    }
}

/// Notes that the clicks take so many bytes more.
fn grow(connection: &Connection, bytes: i64) -> rusqlite::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    connection
        .prepare_cached("UPDATE clicks_size SET bytes = max(bytes + ?1, 0)")?
        .execute([bytes])
        .map(drop)
}

pub(super) fn size(connection: &Connection) -> rusqlite::Result<u64> {
    let bytes: Option<i64> = connection
        .prepare_cached("SELECT bytes FROM clicks_size")?
        .query_row((), |row| row.get(0))
        .optional()?;
    Ok(bytes.map_or(0, |bytes| bytes.max(0).cast_unsigned()))
}

fn insert(
    connection: &Connection,
    subject: SubjectNumber,
    click: &Click,
) -> rusqlite::Result<usize> {
    let asked = match &click.outcome {
        ClickOutcome::Absent(key) => Some(&**key),
        ClickOutcome::Link(..) | ClickOutcome::BaseUrl => None,
    };
    let (tags, address) = (
        join_tags(&click.tags),
        click.address.map(|address| address.to_string()),
    );
    connection
        .prepare_cached(
            "INSERT INTO clicks (id, subject, owner, asked, tags, class, country, browser, system, device, \
             referrer, language, address) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            free_id(connection, click.at)?,
            subject.0,
            click.owner.map(|owner| owner.0.cast_signed()),
            asked,
            tags,
            click.class as u8,
            &*click.country,
            &*click.browser,
            &*click.system,
            &*click.device,
            &*click.referrer,
            &*click.language,
            address,
        ])?;
    let optional = [asked, tags.as_deref(), address.as_deref()];
    Ok(bytes_of(click, optional))
}

fn bytes_of(click: &Click, optional: [Option<&str>; 3]) -> usize {
    let texts = [
        &click.country,
        &click.browser,
        &click.system,
        &click.device,
        &click.referrer,
        &click.language,
    ];
    let texts = texts.iter().map(|text| text.len());
    let optional = optional.iter().flatten().map(|text| text.len());
    ROW_BYTES + texts.chain(optional).sum::<usize>()
}

/// The first row id from the click's millisecond on behind all others of it.
fn free_id(connection: &Connection, at: UnixMillis) -> rusqlite::Result<i64> {
    let mut statement =
        connection.prepare_cached("SELECT max(id) FROM clicks WHERE id >= ?1 AND id < ?2")?;
    let mut start = first_id(at);
    loop {
        let end = start + (1 << NUMBER_BITS);
        let last: Option<i64> = statement.query_row((start, end), |row| row.get(0))?;
        match last {
            None => return Ok(start),
            Some(last) if last + 1 < end => return Ok(last + 1),
            Some(_) => start = end,
        }
    }
}

/// The rows that the query is about, before it asks whose they are. `None` if its cursor is not ours.
pub(super) fn ids_of(query: &ClickQuery) -> Option<Range<i64>> {
    let start = first_id(query.from);
    let end = if query.before > UnixMillis::MAX {
        i64::MAX
    } else {
        first_id(query.before)
    };
    let Some(cursor) = &query.cursor else {
        return Some(start..end);
    };
    let before: i64 = page_cursor::unseal(LIST, cursor)?.parse().ok()?;
    Some(start..end.min(before))
}

pub(super) fn page(
    connection: &Connection,
    query: &ClickQuery,
    ids: Range<i64>,
) -> rusqlite::Result<ClickPage> {
    let mut page = ClickPage::default();
    let Some((condition, owner_of)) = condition(connection, &query.subject)? else {
        return Ok(page);
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM clicks v CROSS JOIN click_subjects s ON s.id = v.subject \
         WHERE v.id >= ?1 AND v.id < ?2 AND {condition} ORDER BY v.id DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query((ids.start, ids.end, owner_of))?;
    let mut scanned = 0;
    let mut last_seen = None;
    while let Some(row) = rows.next()? {
        if scanned == PAGE_ROWS_SCANNED_MAX || page.clicks.len() >= query.limit {
            page.next = last_seen.map(|id: i64| page_cursor::seal(LIST, &id.to_string()));
            break;
        }
        scanned += 1;
        last_seen = Some(row.get(0)?);
        let click = click_of(row)?;
        if has_tag(&click, &query.subject) && query.filter.takes(&click) {
            page.clicks.push(click);
        }
    }
    Ok(page)
}

/// Which rows are of the subject, with the number that stands in the condition. `None`: none are.
fn condition(
    connection: &Connection,
    subject: &ClickSubject,
) -> rusqlite::Result<Option<(&'static str, Value)>> {
    Ok(match subject {
        ClickSubject::Everything => Some(("?3 IS NULL", Value::Null)),
        ClickSubject::Owner(owner) | ClickSubject::Tag(owner, _) => {
            Some(("v.owner = ?3", Value::Integer(owner.0.cast_signed())))
        }
        ClickSubject::Orphans | ClickSubject::Link(..) => subjects::find(connection, subject)?
            .map(|number| ("v.subject = ?3", Value::Integer(number.0))),
    })
}

fn has_tag(click: &Click, subject: &ClickSubject) -> bool {
    match subject {
        ClickSubject::Tag(_, tag) => click.tags.iter().any(|own| own.eq_ignore_ascii_case(tag)),
        _ => true,
    }
}

fn click_of(row: &Row<'_>) -> rusqlite::Result<Click> {
    let text = |column: usize| -> rusqlite::Result<Box<str>> { row.get(column) };
    let address: Option<String> = row.get(14)?;
    let address = address.map(|text| {
        text.parse()
            .map_err(|_| decode::unknown(14, Type::Text, text))
    });
    Ok(Click {
        at: UnixMillis(row.get::<_, i64>(0)? >> NUMBER_BITS),
        outcome: outcome(row)?,
        owner: row
            .get::<_, Option<i64>>(4)?
            .map(|owner| OwnerId(owner.cast_unsigned())),
        tags: split_tags(row.get_ref(6)?.as_str_or_null()?),
        class: decode::number(row, 7, ClickClass::from_stored)?,
        country: text(8)?,
        browser: text(9)?,
        system: text(10)?,
        device: text(11)?,
        referrer: text(12)?,
        language: text(13)?,
        address: address.transpose()?,
    })
}

fn outcome(row: &Row<'_>) -> rusqlite::Result<ClickOutcome> {
    if row.get::<_, u8>(1)? == LINK_KIND {
        let (domain, generation) = link_of_number(row.get(2)?);
        let id = LinkId::new(domain, decode::key(row, 3)?);
        return Ok(ClickOutcome::Link(id, generation));
    }
    Ok(match row.get::<_, Option<Box<str>>>(5)? {
        Some(key) => ClickOutcome::Absent(key),
        None => ClickOutcome::BaseUrl,
    })
}

pub(super) fn purge(
    connection: &Connection,
    before: UnixMillis,
    limit: usize,
) -> rusqlite::Result<u64> {
    remove(connection, first_id(before), i64::MAX, limit)
}

/// Removes the oldest clicks until the rest takes no more than `bytes_max`, but `limit` of them at most.
pub(super) fn trim(connection: &Connection, bytes_max: u64, limit: usize) -> rusqlite::Result<u64> {
    let excess = size(connection)?.saturating_sub(bytes_max);
    let excess = i64::try_from(excess).unwrap_or(i64::MAX);
    match excess {
        0 => Ok(0),
        _ => remove(connection, i64::MAX, excess, limit),
    }
}

/// Removes clicks before an id, oldest first, until they made so many bytes or were so many; says how many went.
fn remove(connection: &Connection, before: i64, bytes: i64, limit: usize) -> rusqlite::Result<u64> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!(
        "DELETE FROM clicks WHERE id IN (SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS gone \
         FROM (SELECT id, {CLICK_BYTES} AS bytes FROM clicks WHERE id < ?1 ORDER BY id LIMIT ?2)) \
         WHERE gone < ?3) RETURNING {CLICK_BYTES}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query((before, limit, bytes))?;
    let (mut count, mut freed) = (0, 0_i64);
    while let Some(row) = rows.next()? {
        count += 1;
        freed = freed.saturating_add(row.get(0)?);
    }
    drop(rows);
    grow(connection, -freed)?;
    Ok(count)
}
