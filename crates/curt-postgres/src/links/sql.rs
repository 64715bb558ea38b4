//! The statements of the ports of links.
//!
//! The order in which a transaction comes to its locks is the same everywhere, so that no two wait for each other in a
//! circle: links in the order of their ids, then released keys by shard, then the session's row of totals. Seeded rows
//! are locked without waiting, and so may come first.

/// Adds the links `$1` to `$22`, one array per column, where the ids are free; `tags` are arrays in text form. `$23` and
/// `$24` are their shards and the epochs at which they were routed. Answers with the ids and revisions of the new ones; or,
/// when some came to a former owner, with the places of those alone, and adds nothing.
pub(super) const INSERT: &str = include_str!("sql/insert.sql");

/// Of the links `$1`, `$2`, those that were inserted with the tokens `$3`.
pub(super) const CREATED_BEFORE: &str = "SELECT l.domain, l.key, l.generation, l.version, own.token \
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS own (domain, key, token) \
     JOIN links AS l ON l.domain = own.domain AND l.key = own.key AND l.request_token = own.token";

pub(super) const FIND: &str = "SELECT domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with FROM links WHERE domain = $1 AND key = $2";

pub(super) const FIND_MANY: &str = "SELECT domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with FROM links \
     WHERE (domain, key) IN (SELECT * FROM unnest($1::bigint[], $2::text[]))";

/// The columns of a list, for `list.rs` to choose rows.
pub(super) const COLUMNS: &str = "domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with";

/// The revision of a link that is neither a tombstone nor a seeded row, and whether its shard `$3` takes no more writes
/// at the epoch `$4`.
pub(super) const REVISION: &str = "SELECT l.generation, l.version, \
     EXISTS (SELECT FROM shard_seals WHERE shard = $3 AND epoch > $4) \
     FROM (SELECT) AS one LEFT JOIN links AS l ON l.domain = $1 AND l.key = $2 AND l.state NOT IN (2, 3)";

/// Gives the link to the owner `$6` at `$7`, if it has the revision `$3`, `$4` and its shard takes writes at the epoch
/// `$8`.
pub(super) const HAND_OVER: &str = "UPDATE links SET version = $5, owner = $6, updated_at = $7 \
     WHERE domain = $1 AND key = $2 AND state < 2 AND generation = $3 AND version = $4 \
     AND NOT EXISTS (SELECT FROM shard_seals AS s WHERE s.shard = links.shard AND s.epoch > $8) RETURNING 1";

/// Edits the link if it has the revision `$3`, `$4`, and its shard takes writes at the epoch `$19`.
pub(super) const UPDATE: &str = include_str!("sql/update.sql");

/// Turns links into tombstones, for deletions and purges.
pub(super) const TOMBSTONE: &str = include_str!("sql/tombstone.sql");

/// The links that expired or were deleted at `$1` or before, `$2` at most.
pub(super) const ENDED: &str = "SELECT domain, key, generation, version FROM ( \
     (SELECT domain, key, generation, version, expires_at AS ended FROM links \
     WHERE state = 0 AND expires_at <= $1 ORDER BY expires_at, domain, key LIMIT $2) UNION ALL \
     (SELECT domain, key, generation, version, updated_at FROM links \
     WHERE state > 3 AND updated_at <= $1 ORDER BY updated_at, domain, key LIMIT $2)) AS due \
     ORDER BY ended, domain, key LIMIT $2";

/// Remembers the generations of the links that [`RELEASE`] is about to remove: tombstones whose quarantine has ended at
/// `$1`, `$2` at most, in shards that take writes at the epochs `$3`. It is committed first: an insert whose snapshot is
/// older than this commit still meets the tombstone.
pub(super) const REMEMBER_GENERATIONS: &str = include_str!("sql/remember_generations.sql");

/// Removes those tombstones whose generation is remembered.
pub(super) const RELEASE: &str = include_str!("sql/release.sql");

/// Adds seeded rows.
pub(super) const SEED: &str = include_str!("sql/seed.sql");

/// Answers with the place, key and generation of each link that was given a row.
pub(super) const CLAIM: &str = include_str!("sql/claim.sql");

/// Forgets the record of the name `$1`, `$2` if it began before `$3`.
pub(super) const FORGET_RECORD: &str =
    "DELETE FROM idempotency WHERE owner = $1 AND name = $2 AND created_at < $3";

/// Records a request unless its name is recorded or its shard `$8` takes no more writes at the epoch `$9`, and answers
/// with what is recorded then. To look at a record is to write it: the commit waits for the standby that an earlier
/// writer, who may have crashed, did not wait for (L-1).
pub(super) const BEGIN: &str = "INSERT INTO idempotency AS i (owner, name, fingerprint, token, version, created_at, plan) \
     SELECT $1::bigint, $2::text, $3::bytea, $4::bytea, $5::bigint, $6::bigint, $7::text \
     WHERE NOT EXISTS (SELECT FROM shard_seals WHERE shard = $8 AND epoch > $9) \
     ON CONFLICT (owner, name) DO UPDATE SET version = i.version \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const REPLACE_PLAN: &str = "UPDATE idempotency SET \
     plan = CASE version WHEN $6::bigint - 1 THEN $7 ELSE plan END, version = greatest(version, $6) \
     WHERE owner = $1 AND name = $2 AND token = $3 \
     AND NOT EXISTS (SELECT FROM shard_seals WHERE shard = $4 AND epoch > $5) \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const FINISH: &str = "UPDATE idempotency SET outcome = coalesce(outcome, $6) \
     WHERE owner = $1 AND name = $2 AND token = $3 \
     AND NOT EXISTS (SELECT FROM shard_seals WHERE shard = $4 AND epoch > $5) \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const CANCEL: &str = "DELETE FROM idempotency \
     WHERE owner = $1 AND name = $2 AND token = $3 AND outcome IS NULL \
     AND NOT EXISTS (SELECT FROM shard_seals WHERE shard = $4 AND epoch > $5) \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const FORGET_BEFORE: &str = "WITH old AS MATERIALIZED (SELECT owner, name FROM idempotency \
     WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) \
     DELETE FROM idempotency AS i USING old WHERE i.owner = old.owner AND i.name = old.name RETURNING 1";

/// Takes a click from the active link `$1`, `$2` at the revision `$3`, `$4`, where it has one left and its shard takes
/// writes at the epoch `$5`. Answers with the limit and how many clicks were taken, or with nothing.
pub(super) const SPEND: &str = include_str!("sql/spend.sql");

pub(super) const SPENT: &str = "SELECT coalesce(c.spent, 0) \
     FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS own (domain, key, place) \
     LEFT JOIN link_clicks AS c ON c.domain = own.domain AND c.key = own.key ORDER BY own.place";

pub(super) const COUNTS: &str = "SELECT sum(created_alias)::bigint, sum(created_ledger)::bigint, \
     sum(created_file)::bigint, sum(created_claim)::bigint, sum(created_id)::bigint, sum(created_hash)::bigint, \
     sum(created_random)::bigint, sum(live)::bigint, sum(deleted)::bigint, sum(deleted_from_ledger)::bigint, \
     (SELECT coalesce(sum(count), 0)::bigint FROM released_keys WHERE origin = 1 \
     AND shard NOT IN (SELECT shard FROM shard_copies WHERE state IN (1, 4))), sum(seeded)::bigint FROM link_counts";

/// How many rows of the shard `$1` are in which state, by origin, among the `$4` rows behind `$2`, `$3`.
pub(super) const COUNT_SHARD: &str = "SELECT origin, state, count(*) FROM (SELECT shard, origin, state FROM links \
     WHERE (domain, key) > ($2, $3) ORDER BY domain, key LIMIT $4) AS part WHERE shard = $1 GROUP BY origin, state";

/// Waits for the writes that have begun and lets no other begin. Statements come to their locks before they take the
/// snapshot by which they see seals.
pub(super) const LOCK_SEALS: &str = "LOCK TABLE shard_seals IN ACCESS EXCLUSIVE MODE";

pub(super) const SEAL: &str = "INSERT INTO shard_seals AS s (shard, epoch) VALUES ($1, $2) \
     ON CONFLICT (shard) DO UPDATE SET epoch = greatest(s.epoch, excluded.epoch)";

pub(super) const PING: &str =
    "UPDATE link_counts SET pings = pings + 1 WHERE slot = pg_backend_pid() % 256";

/// Reads the table as a look-up does, and tells where the primary is in its log; a standby does not.
pub(super) const PING_READS: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL \
     ELSE pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint END, EXISTS (SELECT FROM links)";

pub(super) const IDENTITY: &str = "SELECT identity FROM node_identity";

pub(super) const MAKE_IDENTITY: &str = "INSERT INTO node_identity (one, identity) \
     SELECT true, gen_random_uuid()::text ON CONFLICT (one) DO NOTHING";

/// Notes that a mover tracks the shard `$1`, unless one with a greater fence than `$2` does.
pub(super) const TRACK: &str = "INSERT INTO shard_tracking AS t (shard, fence) VALUES ($1, $2) \
     ON CONFLICT (shard) DO UPDATE SET fence = excluded.fence WHERE t.fence <= excluded.fence RETURNING 1";

/// Ends that, and says whether it is refused, and whether other shards are tracked.
pub(super) const STOP_TRACKING: &str = "WITH ended AS (DELETE FROM shard_tracking WHERE shard = $1 AND fence <= $2 RETURNING 1) \
     SELECT EXISTS (SELECT FROM shard_tracking WHERE shard = $1 AND fence > $2), \
     EXISTS (SELECT FROM shard_tracking WHERE shard <> $1)";

/// Scripts.
pub(super) const ENABLE_TRACKING: &str = include_str!("sql/track.sql");
pub(super) const DISABLE_TRACKING: &str = include_str!("sql/stop_tracking.sql");

/// The ids of the shard `$1` among the `$4` rows behind `$2`, `$3`, and the last of these rows, if there are as many.
pub(super) const SCAN_SHARD: &str = "(SELECT domain, key, false FROM (SELECT domain, key, shard FROM links \
     WHERE (domain, key) > ($2, $3) ORDER BY domain, key LIMIT $4) AS part WHERE shard = $1) UNION ALL \
     (SELECT domain, key, true FROM links WHERE (domain, key) > ($2, $3) ORDER BY domain, key OFFSET $4::bigint - 1 LIMIT 1)";

/// The last of the `$3` rows behind `$1`, `$2`, if there are as many.
pub(super) const LAST_SCANNED: &str = "SELECT domain, key FROM links WHERE (domain, key) > ($1, $2) ORDER BY domain, key OFFSET $3::bigint - 1 LIMIT 1";

pub(super) const SCAN_GENERATIONS: &str = "SELECT domain, key FROM key_generations \
     WHERE shard = $1 AND (domain, key) > ($2, $3) ORDER BY domain, key LIMIT $4";

pub(super) const SCAN_REQUESTS: &str = "SELECT owner, name FROM idempotency WHERE (owner, name) > ($1, $2) ORDER BY owner, name LIMIT $3";

/// Everything under the ids `$1`, `$2` of the shards `$3`.
pub(super) const FIND_ITEMS: &str = "SELECT l.domain, l.key, target, owner, state, origin, l.generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with, request_token, coalesce(c.spent, 0), own.domain, own.key, g.generation \
     FROM unnest($1::bigint[], $2::text[], $3::smallint[]) AS own (domain, key, shard) \
     LEFT JOIN links AS l ON l.domain = own.domain AND l.key = own.key \
     LEFT JOIN link_clicks AS c ON c.domain = own.domain AND c.key = own.key \
     LEFT JOIN key_generations AS g ON g.shard = own.shard AND g.domain = own.domain AND g.key = own.key";

pub(super) const FIND_REQUESTS: &str = "SELECT fingerprint, token, version, created_at, plan, outcome, own.owner, own.name \
     FROM unnest($1::bigint[], $2::text[]) AS own (owner, name) \
     LEFT JOIN idempotency AS i ON i.owner = own.owner AND i.name = own.name";

pub(super) const RELEASED_OF_SHARD: &str =
    "SELECT origin, count FROM released_keys WHERE shard = $1";

pub(super) const CHANGES: &str =
    "SELECT number, holder, is_link, name FROM shard_changes ORDER BY number LIMIT $1";

pub(super) const FORGET_CHANGES: &str = "DELETE FROM shard_changes WHERE number = ANY ($1)";

/// Begins the copy of the shard `$1` by the mover with the fence `$2`, to be owned at the epoch `$3`, and seals it
/// until then. Answers with nothing if it is refused.
pub(super) const BEGIN_IMPORT: &str = "WITH begun AS ( \
     INSERT INTO shard_copies AS c (shard, fence, retired, state) VALUES ($1, $2, 0, 1) \
     ON CONFLICT (shard) DO UPDATE SET fence = excluded.fence, state = 1 \
     WHERE c.state < 2 AND c.fence <= excluded.fence RETURNING 1 \
     ), sealed AS ( \
     INSERT INTO shard_seals AS s (shard, epoch) SELECT $1, $3 FROM begun \
     ON CONFLICT (shard) DO UPDATE SET epoch = greatest(s.epoch, excluded.epoch)) \
     SELECT 1 FROM begun";

/// Whether the mover with the fence `$2` copies the shard `$1`, which stays so until the transaction ends.
pub(super) const GUARD_IMPORT: &str =
    "SELECT 1 FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1 FOR SHARE";

pub(super) const IMPORT_UNTAG: &str = "DELETE FROM link_tags AS t \
     USING unnest($3::bigint[], $4::text[]) AS own (domain, key), links AS l \
     WHERE l.domain = own.domain AND l.key = own.key AND t.created_at = l.created_at AND t.domain = l.domain AND t.key = l.key \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1)";

pub(super) const IMPORT_REMOVE: &str = "DELETE FROM links AS l USING unnest($3::bigint[], $4::text[]) AS own (domain, key) \
     WHERE l.domain = own.domain AND l.key = own.key AND l.shard = $1 \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1)";

pub(super) const IMPORT_LINKS: &str = include_str!("sql/import_links.sql");

pub(super) const IMPORT_SPENT: &str = "INSERT INTO link_clicks (domain, key, spent) \
     SELECT domain, key, spent FROM unnest($3::bigint[], $4::text[], $5::bigint[]) AS own (domain, key, spent) \
     WHERE spent > 0 AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1) \
     ON CONFLICT (domain, key) DO UPDATE SET spent = excluded.spent";

pub(super) const IMPORT_FORGET_FORMER: &str = "DELETE FROM key_generations AS g \
     USING unnest($3::bigint[], $4::text[]) AS own (domain, key) \
     WHERE g.shard = $1 AND g.domain = own.domain AND g.key = own.key \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1)";

pub(super) const IMPORT_FORMER: &str = "INSERT INTO key_generations (shard, domain, key, generation) \
     SELECT $1::smallint, domain, key, generation \
     FROM unnest($3::bigint[], $4::text[], $5::bigint[]) AS own (domain, key, generation) \
     WHERE EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1) ON CONFLICT DO NOTHING";

pub(super) const IMPORT_FORGET_REQUESTS: &str = "DELETE FROM idempotency AS i \
     USING unnest($3::bigint[], $4::text[]) AS own (owner, name) WHERE i.owner = own.owner AND i.name = own.name \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1)";

pub(super) const IMPORT_REQUESTS: &str = "INSERT INTO idempotency \
     (owner, name, fingerprint, token, version, created_at, plan, outcome) \
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[], $7::text[], $8::text[]) \
     WHERE EXISTS (SELECT FROM shard_copies WHERE shard = $9 AND fence = $10 AND state = 1) ON CONFLICT DO NOTHING";

pub(super) const IMPORT_RELEASED: &str = "INSERT INTO released_keys (shard, origin, count) \
     SELECT $1::smallint, origin, count FROM unnest($3::smallint[], $4::bigint[]) AS own (origin, count) \
     WHERE EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state = 1) \
     ON CONFLICT (shard, origin) DO UPDATE SET count = excluded.count";

/// Leads the shard `$1` from the state `$4` to the state `$5` and adds `$3` to the totals, once. Answers whether it is
/// there.
pub(super) const SETTLE: &str = include_str!("sql/settle.sql");

/// Gives up the shard `$1`, which another node owns since the epoch `$3`. Answers whether it is given up.
pub(super) const RETIRE: &str = "WITH retired AS ( \
     INSERT INTO shard_copies AS s (shard, fence, retired, state) VALUES ($1, $2, $3, 3) \
     ON CONFLICT (shard) DO UPDATE SET state = 3, fence = excluded.fence, retired = excluded.retired \
     WHERE s.state = 2 AND s.fence <= excluded.fence RETURNING 1) \
     SELECT EXISTS (SELECT FROM retired) \
     OR EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND state IN (0, 3, 4) AND fence <= $2)";

/// Whether the mover with the fence `$2` may remove what is left of the shard `$1`.
pub(super) const GUARD_DROP: &str = "UPDATE shard_copies SET fence = $2 WHERE shard = $1 AND fence <= $2 AND state IN (0, 1, 4) RETURNING 1";

pub(super) const DROP_TAGS: &str = "DELETE FROM link_tags AS t \
     USING unnest($3::bigint[], $4::text[]) AS own (domain, key), links AS l \
     WHERE l.domain = own.domain AND l.key = own.key AND t.created_at = l.created_at AND t.domain = l.domain AND t.key = l.key \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state IN (0, 1, 4))";

pub(super) const DROP_LINKS: &str = "DELETE FROM links AS l USING unnest($3::bigint[], $4::text[]) AS own (domain, key) \
     WHERE l.domain = own.domain AND l.key = own.key AND l.shard = $1 \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state IN (0, 1, 4))";

pub(super) const DROP_FORMER: &str = "DELETE FROM key_generations WHERE shard = $1 \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state IN (0, 1, 4))";

pub(super) const DROP_RELEASED: &str = "DELETE FROM released_keys WHERE shard = $1 \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state IN (0, 1, 4))";

pub(super) const DROPPED: &str =
    "UPDATE shard_copies SET state = 0 WHERE shard = $1 AND fence = $2 AND state IN (0, 1, 4)";

pub(super) const DROP_REQUESTS: &str = "DELETE FROM idempotency AS i \
     USING unnest($3::bigint[], $4::text[]) AS own (owner, name) WHERE i.owner = own.owner AND i.name = own.name \
     AND EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND fence = $2 AND state IN (0, 1, 4))";

/// As [`FIND`], with whether the shard `$3` was given up to an owner with a later epoch than `$4`. No row: there is
/// neither a link nor another owner.
pub(super) const FIND_ROUTED: &str = "SELECT domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with, retired FROM (SELECT EXISTS (SELECT FROM shard_copies AS s \
     WHERE s.shard = $3 AND s.retired > $4) AS retired) AS one \
     LEFT JOIN links ON domain = $1 AND key = $2 WHERE retired OR domain IS NOT NULL";

/// As [`FIND_ROUTED`], for several keys at once; the last column says which one a row is for, counted from 1. By the
/// limit each is found by the index of keys, however few links the engine believed to be there when it made its plan.
pub(super) const FIND_GROUP: &str = "SELECT l.domain, l.key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with, retired, number FROM (SELECT own.*, EXISTS (SELECT FROM shard_copies AS s \
     WHERE s.shard = own.shard AND s.retired > own.epoch) AS retired \
     FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[]) \
     WITH ORDINALITY AS own (domain, key, shard, epoch, number)) AS own \
     LEFT JOIN LATERAL (SELECT * FROM links WHERE links.domain = own.domain AND links.key = own.key LIMIT 1) AS l \
     ON true WHERE retired OR l.domain IS NOT NULL";

/// The shards that were given up, with the epochs at which others own them.
pub(super) const RETIRED: &str = "SELECT shard, retired FROM shard_copies WHERE retired > 0";

/// Whether the shard `$1` takes no more writes at the epoch `$2`.
pub(super) const IS_SEALED: &str =
    "SELECT EXISTS (SELECT FROM shard_seals WHERE shard = $1 AND epoch > $2)";
