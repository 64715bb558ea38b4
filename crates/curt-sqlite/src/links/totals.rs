//! What [`LinkCounts`] adds up, moved by every change of a link.

use std::time::Duration;

use curt_core::ports::LinkCounts;
use curt_core::{KeyOrigin, LinkState};
use rusqlite::Connection;

use super::shards;
use crate::engine::counters::{CounterChanges, CounterName, Counters};

pub(super) const PINGS: CounterName = "pings";
const LIVE: CounterName = "links.live";
const DELETED: CounterName = "links.deleted";
const DELETED_FROM_LEDGER: CounterName = "links.deleted_from_ledger";
const SEEDED: CounterName = "links.seeded";

fn created(origin: KeyOrigin) -> CounterName {
    match origin {
        KeyOrigin::Alias => "links.created.alias",
        KeyOrigin::Ledger => "links.created.ledger",
        KeyOrigin::File => "links.created.file",
        KeyOrigin::Claim => "links.created.claim",
        KeyOrigin::Id => "links.created.id",
        KeyOrigin::Hash => "links.created.hash",
        KeyOrigin::Random => "links.created.random",
    }
}

/// A link came to be.
pub(super) fn add_created(counters: &mut CounterChanges, origin: KeyOrigin, count: i64) {
    counters.add(created(origin), count);
}

/// `count` more rows (or fewer, when negative) are in `state`.
pub(super) fn add_in_state(
    counters: &mut CounterChanges,
    state: LinkState,
    origin: KeyOrigin,
    count: i64,
) {
    match state {
        LinkState::Active | LinkState::Disabled => counters.add(LIVE, count),
        LinkState::Seeded => counters.add(SEEDED, count),
        LinkState::Tombstone | LinkState::Deleted | LinkState::DeletedDisabled => {
            counters.add(DELETED, count);
            if origin == KeyOrigin::Ledger {
                counters.add(DELETED_FROM_LEDGER, count);
            }
        }
    }
}

/// Shards that moved took their part of the totals along.
pub(super) fn add_counts(counters: &mut CounterChanges, counts: &LinkCounts, sign: i64) {
    for (origin, count) in &counts.created {
        counters.add(created(*origin), count.cast_signed() * sign);
    }
    for (name, count) in [
        (LIVE, counts.live),
        (DELETED, counts.deleted),
        (DELETED_FROM_LEDGER, counts.deleted_from_ledger),
        (SEEDED, counts.seeded),
    ] {
        counters.add(name, count.cast_signed() * sign);
    }
}

pub(super) fn read(connection: &Connection) -> rusqlite::Result<LinkCounts> {
    let counters = Counters::read(connection)?;
    Ok(LinkCounts {
        created: KeyOrigin::ALL
            .into_iter()
            .map(|origin| (origin, counters.get(created(origin))))
            .filter(|(_, count)| *count > 0)
            .collect(),
        live: counters.get(LIVE),
        deleted: counters.get(DELETED),
        deleted_from_ledger: counters.get(DELETED_FROM_LEDGER),
        released_from_ledger: shards::released(connection, None, KeyOrigin::Ledger)?,
        seeded: counters.get(SEEDED),
        lag: Duration::ZERO,
    })
}
