//! A link as a row of the table `links`.

use curt_core::account::ApiKeyNumber;
use curt_core::ports::{Inserted, LinkChange, RequestToken, StoredRow};
use curt_core::{
    DomainId, KeyOrigin, Link, LinkId, LinkState, OwnerId, RedirectStatus, Revision, Target,
    UnixMillis, Visibility,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Statement};

use super::{generations, spend, totals};
use crate::decode;
use crate::engine::writer::Work;
use crate::tags::{join_tags, split_tags};

/// Where reads of whole rows have the row id.
pub(super) const ROW_ID: usize = 21;
/// Reads whole rows, in the order of [`bind`] and [`link_of`]; a condition follows.
pub(super) const SELECT: &str = "SELECT domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, \
     forward_query, title, tags, made_with, id FROM links ";
const FIND: &str = "SELECT domain, key, target, owner, state, origin, generation, version, created_at, updated_at, \
     expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, \
     tags, made_with, id FROM links WHERE domain = ?1 AND key = ?2";
const INSERT: &str = "INSERT INTO links (domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with, request_token) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
     ?16, ?17, ?18, ?19, ?20, ?21, ?22) ON CONFLICT (domain, key) DO NOTHING";
/// Leaves out what never changes, so that the indexes over it are not touched.
const UPDATE: &str = "UPDATE links SET target = ?3, state = ?5, generation = ?7, version = ?8, updated_at = ?10, \
     expires_at = ?11, valid_since = ?12, max_clicks = ?13, visibility = ?14, password_hash = ?15, status = ?16, \
     was_permanent = ?17, forward_query = ?18, title = ?19, tags = ?20 WHERE id = ?22";
/// Gives a row away: everything but the key becomes the new owner's, and the row moves to the end of the table, where
/// the newest links are.
const GIVE: &str = "UPDATE links SET id = (SELECT max(id) + 1 FROM links), target = ?3, owner = ?4, state = ?5, \
     origin = ?6, generation = ?7, version = ?8, created_at = ?9, updated_at = ?10, expires_at = ?11, \
     valid_since = ?12, max_clicks = ?13, visibility = ?14, password_hash = ?15, status = ?16, was_permanent = ?17, \
     forward_query = ?18, title = ?19, tags = ?20, made_with = ?21 WHERE id = ?22 RETURNING id";

/// Makes a row that of another database.
const OVERWRITE: &str = "UPDATE links SET target = ?3, owner = ?4, state = ?5, origin = ?6, generation = ?7, \
     version = ?8, created_at = ?9, updated_at = ?10, expires_at = ?11, valid_since = ?12, max_clicks = ?13, \
     visibility = ?14, password_hash = ?15, status = ?16, was_permanent = ?17, forward_query = ?18, title = ?19, \
     tags = ?20, made_with = ?21, request_token = ?23 WHERE id = ?22";

/// What a seeded row, which leads nowhere, shows as its target.
const SEEDED_TARGET: &str = "about:blank";

/// A link with what the store knows beyond it.
pub(super) struct StoredLink {
    pub(super) row_id: i64,
    pub(super) link: Link,
    /// Whether it ever redirected with a status that browsers keep.
    pub(super) was_permanent: bool,
}

pub(super) fn find(connection: &Connection, id: &LinkId) -> rusqlite::Result<Option<StoredLink>> {
    connection
        .prepare_cached(FIND)?
        .query_row((id.domain.0, id.key.as_str()), stored_of)
        .optional()
}

/// Adds a row, with the generation that follows that of the last link which had the key, where the id is free.
pub(super) fn insert_if_absent(
    work: &mut Work<'_>,
    link: &Link,
    token: Option<RequestToken>,
) -> rusqlite::Result<Inserted> {
    let connection = work.connection;
    let former = generations::former(connection, &link.id)?;
    let change = LinkChange {
        id: link.id.clone(),
        revision: link.revision.after_former(former),
    };
    let mut statement = connection.prepare_cached(INSERT)?;
    bind(&mut statement, link, link.status.is_permanent())?;
    statement.raw_bind_parameter(7, change.revision.generation)?;
    statement.raw_bind_parameter(22, token.map(|token| token.0))?;
    if statement.raw_execute()? == 0 {
        let before = token.map(|token| find_created_by(connection, &link.id, token));
        let before = before.transpose()?.flatten();
        return Ok(before.map_or(Inserted::Conflict, Inserted::CreatedBefore));
    }
    if !link.tags.is_empty() {
        add_tags(connection, connection.last_insert_rowid(), &link.tags)?;
    }
    totals::add_created(work.counters, link.origin, 1);
    totals::add_in_state(work.counters, link.state, link.origin, 1);
    Ok(Inserted::Created(change))
}

/// The link under `id` if the request with this token created it.
fn find_created_by(
    connection: &Connection,
    id: &LinkId,
    token: RequestToken,
) -> rusqlite::Result<Option<LinkChange>> {
    connection
        .prepare_cached(
            "SELECT generation, version FROM links WHERE domain = ?1 AND key = ?2 AND request_token = ?3",
        )?
        .query_row((id.domain.0, id.key.as_str(), token.0), |row| {
            let (generation, version) = (row.get(0)?, row.get(1)?);
            Ok(LinkChange {
                id: id.clone(),
                revision: Revision {
                    generation,
                    version,
                },
            })
        })
        .optional()
}

/// Replaces `before` by `link` in the same row.
pub(super) fn replace(
    connection: &Connection,
    before: &StoredLink,
    link: &Link,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(UPDATE)?;
    let was_permanent = before.was_permanent || link.status.is_permanent();
    bind(&mut statement, link, was_permanent)?;
    statement.raw_bind_parameter(22, before.row_id)?;
    statement.raw_execute()?;
    if before.link.tags != link.tags {
        remove_tags(connection, before.row_id, &before.link.tags)?;
        add_tags(connection, before.row_id, &link.tags)?;
    }
    Ok(())
}

/// Adds a row as another node had it. No row may be under its id.
pub(super) fn import(connection: &Connection, stored: &StoredRow) -> rusqlite::Result<()> {
    let link = &stored.link;
    let mut statement = connection.prepare_cached(INSERT)?;
    bind(&mut statement, link, stored.was_permanent)?;
    statement.raw_bind_parameter(22, stored.token.map(|token| token.0))?;
    statement.raw_execute()?;
    let row_id = connection.last_insert_rowid();
    add_tags(connection, row_id, &link.tags)?;
    if stored.clicks_spent > 0 {
        connection
            .prepare_cached("INSERT OR REPLACE INTO link_clicks (link, spent) VALUES (?1, ?2)")?
            .execute((row_id, stored.clicks_spent.cast_signed()))?;
    }
    Ok(())
}

/// Makes the row `before` what another database has under the same id.
pub(super) fn overwrite(
    connection: &Connection,
    before: &StoredLink,
    after: &StoredRow,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(OVERWRITE)?;
    bind(&mut statement, &after.link, after.was_permanent)?;
    statement.raw_bind_parameter(22, before.row_id)?;
    statement.raw_bind_parameter(23, after.token.map(|token| token.0))?;
    statement.raw_execute()?;
    remove_tags(connection, before.row_id, &before.link.tags)?;
    add_tags(connection, before.row_id, &after.link.tags)?;
    set_spent(connection, before.row_id, after.clicks_spent)
}

/// A link of which no click was taken has no row for them.
fn set_spent(connection: &Connection, row_id: i64, spent: u64) -> rusqlite::Result<()> {
    if spent == 0 {
        return spend::forget(connection, row_id);
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO link_clicks (link, spent) VALUES (?1, ?2)")?
        .execute((row_id, spent.cast_signed()))
        .map(drop)
}

/// Removes a row in any state, with what is kept beside it.
pub(super) fn remove(connection: &Connection, id: &LinkId) -> rusqlite::Result<()> {
    let Some(stored) = find(connection, id)? else {
        return Ok(());
    };
    remove_tags(connection, stored.row_id, &stored.link.tags)?;
    spend::forget(connection, stored.row_id)?;
    connection
        .prepare_cached("DELETE FROM links WHERE id = ?1")?
        .execute([stored.row_id])
        .map(drop)
}

/// Makes the seeded row `row_id` the row of `link`, which carries its key.
pub(super) fn give(connection: &Connection, row_id: i64, link: &Link) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(GIVE)?;
    bind(&mut statement, link, link.status.is_permanent())?;
    statement.raw_bind_parameter(22, row_id)?;
    let new_row_id: i64 = match statement.raw_query().next()? {
        Some(row) => row.get(0)?,
        None => return Err(rusqlite::Error::QueryReturnedNoRows),
    };
    add_tags(connection, new_row_id, &link.tags)
}

pub(super) fn stored_of(row: &Row<'_>) -> rusqlite::Result<StoredLink> {
    Ok(StoredLink {
        link: link_of(row)?,
        was_permanent: row.get(16)?,
        row_id: row.get(ROW_ID)?,
    })
}

fn link_of(row: &Row<'_>) -> rusqlite::Result<Link> {
    let state = decode::number(row, 4, LinkState::from_stored)?;
    let created_at = UnixMillis(row.get(8)?);
    let millis =
        |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(UnixMillis));
    Ok(Link {
        id: id_of(row)?,
        target: target_of(row, state)?,
        owner: OwnerId(row.get::<_, i64>(3)?.cast_unsigned()),
        state,
        revision: Revision {
            generation: row.get(6)?,
            version: row.get(7)?,
        },
        origin: decode::number(row, 5, KeyOrigin::from_stored)?,
        created_at,
        updated_at: millis(9)?.unwrap_or(created_at),
        expires_at: millis(10)?,
        valid_since: millis(11)?,
        max_clicks: row.get::<_, Option<i64>>(12)?.map(i64::cast_unsigned),
        visibility: decode::number(row, 13, Visibility::from_stored)?,
        password_hash: row.get(14)?,
        status: status_of(row)?,
        forward_query: row.get(17)?,
        title: row.get(18)?,
        tags: tags_of(row)?,
        made_with: row.get::<_, Option<u32>>(20)?.map(ApiKeyNumber),
    })
}

/// The identity in the first two columns of a row.
pub(super) fn id_of(row: &Row<'_>) -> rusqlite::Result<LinkId> {
    Ok(LinkId::new(DomainId(row.get(0)?), decode::key(row, 1)?))
}

pub(super) fn tags_of(row: &Row<'_>) -> rusqlite::Result<Vec<Box<str>>> {
    Ok(split_tags(row.get_ref(19)?.as_str_or_null()?))
}

fn target_of(row: &Row<'_>, state: LinkState) -> rusqlite::Result<Target> {
    let text = match state {
        LinkState::Seeded => SEEDED_TARGET,
        _ => row.get_ref(2)?.as_str()?,
    };
    Target::from_serialised(text).map_err(|_| decode::unknown(2, Type::Text, text))
}

fn status_of(row: &Row<'_>) -> rusqlite::Result<RedirectStatus> {
    let Some(code) = row.get::<_, Option<u16>>(15)? else {
        return Ok(RedirectStatus::default());
    };
    RedirectStatus::from_code(code).ok_or_else(|| decode::unknown(15, Type::Integer, code))
}

fn bind(statement: &mut Statement<'_>, link: &Link, was_permanent: bool) -> rusqlite::Result<()> {
    // The time of a deletion is in an index, so it is always written out.
    let updated_at =
        (link.updated_at != link.created_at || !link.state.is_live()).then_some(link.updated_at.0);
    let status = (link.status != RedirectStatus::default()).then_some(link.status.code());
    statement.raw_bind_parameter(1, link.id.domain.0)?;
    statement.raw_bind_parameter(2, link.id.key.as_str())?;
    statement.raw_bind_parameter(3, link.target.as_str())?;
    statement.raw_bind_parameter(4, link.owner.0.cast_signed())?;
    statement.raw_bind_parameter(5, link.state as u8)?;
    statement.raw_bind_parameter(6, link.origin as u8)?;
    statement.raw_bind_parameter(7, link.revision.generation)?;
    statement.raw_bind_parameter(8, link.revision.version)?;
    statement.raw_bind_parameter(9, link.created_at.0)?;
    statement.raw_bind_parameter(10, updated_at)?;
    statement.raw_bind_parameter(11, link.expires_at.map(|at| at.0))?;
    statement.raw_bind_parameter(12, link.valid_since.map(|at| at.0))?;
    statement.raw_bind_parameter(13, link.max_clicks.map(u64::cast_signed))?;
    statement.raw_bind_parameter(14, link.visibility as u8)?;
    statement.raw_bind_parameter(15, link.password_hash.as_deref())?;
    statement.raw_bind_parameter(16, status)?;
    statement.raw_bind_parameter(17, was_permanent)?;
    statement.raw_bind_parameter(18, link.forward_query)?;
    statement.raw_bind_parameter(19, link.title.as_deref())?;
    statement.raw_bind_parameter(20, join_tags(&link.tags))?;
    statement.raw_bind_parameter(21, link.made_with.map(|number| number.0))
}

fn add_tags(connection: &Connection, row_id: i64, tags: &[Box<str>]) -> rusqlite::Result<()> {
    if tags.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO link_tags (tag, link) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    for tag in tags {
        statement.execute((&**tag, row_id))?;
    }
    Ok(())
}

fn remove_tags(connection: &Connection, row_id: i64, tags: &[Box<str>]) -> rusqlite::Result<()> {
    if tags.is_empty() {
        return Ok(());
    }
    let mut statement =
        connection.prepare_cached("DELETE FROM link_tags WHERE tag = ?1 AND link = ?2")?;
    for tag in tags {
        statement.execute((&**tag, row_id))?;
    }
    Ok(())
}
