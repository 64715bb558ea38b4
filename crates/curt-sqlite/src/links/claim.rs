//! Rows that are seeded ahead of time and claimed one by one.

use curt_core::{DomainId, KeyOrigin, Link, LinkId, LinkState, Revision, ShardMap};

use super::change::keep_if;
use super::{record, totals};
use crate::decode;
use crate::engine::writer::Work;

/// Adds rows that are nobody's. Their generation is that of the last link which had the key, 0 for a new one: the first
/// owner gets the next, like that of any new link.
pub(super) fn seed(work: &mut Work<'_>, map: &ShardMap, ids: &[LinkId]) -> rusqlite::Result<u64> {
    let mut statement = work.connection.prepare_cached(
        "INSERT INTO links (domain, key, target, owner, state, origin, generation, version, created_at, visibility, \
         was_permanent, forward_query) VALUES (?1, ?2, '', 0, 3, 3, coalesce((SELECT generation \
         FROM key_generations AS g WHERE g.domain = ?1 AND g.key = ?2), 0), 0, 0, 0, 0, 0) \
         ON CONFLICT (domain, key) DO NOTHING",
    )?;
    let mut seeded = 0;
    for id in ids {
        if !work.seals.admit(work.connection, map, id)? {
            continue;
        }
        seeded += statement.execute((id.domain.0, id.key.as_str()))?;
    }
    let count = i64::try_from(seeded).unwrap_or(i64::MAX);
    totals::add_in_state(work.counters, LinkState::Seeded, KeyOrigin::Claim, count);
    Ok(seeded as u64)
}

pub(super) fn claim(
    work: &mut Work<'_>,
    map: &ShardMap,
    links: &[Link],
) -> rusqlite::Result<Vec<Link>> {
    let mut claimed = Vec::with_capacity(links.len());
    for link in links {
        let Some(seed) = next_seed(work, map, link.id.domain)? else {
            break;
        };
        let link = Link {
            id: seed.id,
            revision: seed.revision.reborn(),
            ..link.clone()
        };
        record::give(work.connection, seed.row_id, &link)?;
        totals::add_in_state(work.counters, LinkState::Seeded, KeyOrigin::Claim, -1);
        totals::add_in_state(work.counters, link.state, link.origin, 1);
        totals::add_created(work.counters, link.origin, 1);
        claimed.push(link);
    }
    Ok(claimed)
}

struct Seed {
    row_id: i64,
    id: LinkId,
    revision: Revision,
}

fn next_seed(
    work: &mut Work<'_>,
    map: &ShardMap,
    domain: DomainId,
) -> rusqlite::Result<Option<Seed>> {
    let connection = work.connection;
    connection
        .prepare_cached(
            "SELECT id, key, generation, version FROM links INDEXED BY links_seeded \
             WHERE state = 3 AND domain = ?1 ORDER BY id",
        )?
        .query_map([domain.0], |row| {
            Ok(Seed {
                row_id: row.get(0)?,
                id: LinkId::new(domain, decode::key(row, 1)?),
                revision: Revision {
                    generation: row.get(2)?,
                    version: row.get(3)?,
                },
            })
        })?
        .find_map(|seed| keep_if(seed, |seed| work.seals.admit(connection, map, &seed.id)))
        .transpose()
}
