//! What an `Idempotency-Key` was answered.

use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{Once, Replay};
use curt_core::{DomainId, LinkId, UnixMillis};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};

use crate::decode;

/// Records that one call removes at most, so that no call pays for a whole day.
const FORGOTTEN_AT_ONCE: usize = 64;

/// A record that a request met.
pub(super) enum Recorded {
    Same(Replay),
    Other,
}

pub(super) fn find(
    connection: &Connection,
    once: &Once,
    now: UnixMillis,
) -> rusqlite::Result<Option<Recorded>> {
    connection
        .prepare_cached(
            "SELECT fingerprint, outcome, created_at FROM idempotency WHERE owner = ?1 AND key = ?2 AND created_at >= ?3",
        )?
        .query_row(
            (once.owner.0.cast_signed(), &*once.key, oldest_kept(now)),
            |row| {
                if row.get_ref(0)?.as_blob()? != once.fingerprint {
                    return Ok(Recorded::Other);
                }
                Ok(Recorded::Same(Replay {
                    at: UnixMillis(row.get(2)?),
                    ids: parse_outcome(row.get_ref(1)?.as_str()?)?,
                }))
            },
        )
        .optional()
}

/// Keeps the outcome, in the place of one that has grown too old, and removes some more of those.
pub(super) fn record(
    connection: &Connection,
    once: &Once,
    outcome: &[Option<&LinkId>],
    now: UnixMillis,
) -> rusqlite::Result<()> {
    let lines: Vec<String> = outcome
        .iter()
        .map(|id| id.map_or_else(|| "-".to_owned(), LinkId::to_string))
        .collect();
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO idempotency (owner, key, fingerprint, outcome, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            once.owner.0.cast_signed(),
            &*once.key,
            once.fingerprint,
            lines.join("\n"),
            now.0,
        ))?;
    forget_old(connection, now)
}

/// Removes a few records that nobody may ask for any more.
pub(super) fn forget_old(connection: &Connection, now: UnixMillis) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM idempotency WHERE (owner, key) IN \
             (SELECT owner, key FROM idempotency WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)",
        )?
        .execute((oldest_kept(now), FORGOTTEN_AT_ONCE as u32))
        .map(drop)
}

fn oldest_kept(now: UnixMillis) -> i64 {
    now.minus(IDEMPOTENCY_KEPT).0
}

fn parse_outcome(text: &str) -> rusqlite::Result<Vec<Option<LinkId>>> {
    text.lines()
        .map(|line| {
            if line == "-" {
                return Ok(None);
            }
            let parsed = line.split_once('/').and_then(|(domain, key)| {
                let domain = DomainId(domain.parse().ok()?);
                Some(LinkId::new(domain, decode::parse_key(key, 1).ok()?))
            });
            parsed
                .map(Some)
                .ok_or_else(|| decode::unknown(1, Type::Text, line))
        })
        .collect()
}
