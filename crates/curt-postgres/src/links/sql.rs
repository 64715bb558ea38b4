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

/// Records a request unless its name is recorded, and answers with what is recorded then. To look at a record is to write
/// it: the commit waits for the standby that an earlier writer, who may have crashed, did not wait for (L-1).
pub(super) const BEGIN: &str = "INSERT INTO idempotency AS i (owner, name, fingerprint, token, version, created_at, plan) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (owner, name) DO UPDATE SET version = i.version \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const REPLACE_PLAN: &str = "UPDATE idempotency SET \
     plan = CASE version WHEN $4::bigint - 1 THEN $5 ELSE plan END, version = greatest(version, $4) \
     WHERE owner = $1 AND name = $2 AND token = $3 \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const FINISH: &str = "UPDATE idempotency SET outcome = coalesce(outcome, $4) \
     WHERE owner = $1 AND name = $2 AND token = $3 \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const CANCEL: &str = "DELETE FROM idempotency \
     WHERE owner = $1 AND name = $2 AND token = $3 AND outcome IS NULL \
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
     (SELECT coalesce(sum(count), 0)::bigint FROM released_keys WHERE origin = 1), sum(seeded)::bigint FROM link_counts";

pub(super) const SHARD_COUNTS: &str = include_str!("sql/shard_counts.sql");

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
