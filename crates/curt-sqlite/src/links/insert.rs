use std::collections::HashSet;

use curt_core::ports::{InsertReply, InsertRequest, Inserted, Once};
use curt_core::{KeyOrigin, Link, LinkRef};
use rusqlite::Connection;

use super::once::{self, Recorded};
use super::{record, totals};
use crate::engine::writer::Work;

pub(super) fn insert(
    work: &mut Work<'_>,
    request: &InsertRequest,
) -> rusqlite::Result<InsertReply> {
    let Some(once) = &request.once else {
        return Ok(InsertReply::Stored(insert_each(work, &request.links)?));
    };
    match once::find(work.connection, once, request.now)? {
        Some(Recorded::Same(outcome)) => Ok(InsertReply::Replayed(outcome)),
        Some(Recorded::Other) => Ok(InsertReply::Mismatch),
        None => Ok(InsertReply::Stored(insert_whole(work, request, once)?)),
    }
}

fn insert_each(work: &mut Work<'_>, links: &[Link]) -> rusqlite::Result<Vec<Inserted>> {
    links
        .iter()
        .map(|link| {
            let inserted = record::insert(work.connection, link)?;
            if inserted.is_created() {
                totals::add_created(work.counters, link.origin, 1);
                totals::add_in_state(work.counters, link.state, link.origin, 1);
            }
            Ok(inserted)
        })
        .collect()
}

/// All or nothing, with the record of it.
fn insert_whole(
    work: &mut Work<'_>,
    request: &InsertRequest,
    once: &Once,
) -> rusqlite::Result<Vec<Inserted>> {
    let taken = taken(work.connection, &request.links)?;
    let needs_other_keys = request
        .links
        .iter()
        .zip(&taken)
        .any(|(link, taken)| *taken && link.origin != KeyOrigin::Alias);
    if needs_other_keys {
        return Ok(taken
            .into_iter()
            .map(|taken| {
                if taken {
                    Inserted::Conflict
                } else {
                    Inserted::Withheld
                }
            })
            .collect());
    }
    let inserted = insert_each(work, &request.links)?;
    let outcome: Vec<_> = request
        .links
        .iter()
        .zip(&inserted)
        .map(|(link, inserted)| inserted.is_created().then_some(&link.id))
        .collect();
    once::record(work.connection, once, &outcome, request.now)?;
    Ok(inserted)
}

/// For each link, whether its id belongs to another one, of the store or earlier in the request.
fn taken(connection: &Connection, links: &[Link]) -> rusqlite::Result<Vec<bool>> {
    let mut in_request: HashSet<LinkRef<'_>> = HashSet::with_capacity(links.len());
    links
        .iter()
        .map(|link| {
            Ok(!in_request.insert(link.id.as_ref()) || record::exists(connection, &link.id)?)
        })
        .collect()
}
