//! The statements. Each is about the row of one key, or reads; what several rows need is several statements.

/// Adds a link where its id is free. `$23` are the tags in lower case, `$24` the mark.
pub(super) const INSERT: &str = "INSERT INTO links (domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with, request_token, tags_lower, mark, spent) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, 0) \
     ON CONFLICT (domain, key) DO NOTHING RETURNING domain, key, generation, version";

/// Gives the row that was added with the mark `$3` the generation behind the last one that was released. In the transaction
/// of the insert and behind it: that waited for the tombstone's end, before which its generation was remembered.
pub(super) const FOLLOW_RELEASED: &str = "UPDATE links SET generation = (SELECT least(max(r.generation) + 1, 4294967295) \
     FROM released_links AS r WHERE r.domain = $1 AND r.key = $2) \
     WHERE domain = $1 AND key = $2 AND mark = $3 AND generation <= (SELECT max(r.generation) \
     FROM released_links AS r WHERE r.domain = $1 AND r.key = $2) RETURNING generation";

pub(super) const FIND_TOKEN: &str = "SELECT domain, key, generation, version, request_token FROM links WHERE domain = $1 AND key = $2";

/// More than is asked for, where ids differ in both parts.
pub(super) const FIND_MANY: &str = "SELECT domain, key, target, owner, state, origin, generation, version, created_at, \
     updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
     title, tags, made_with FROM links WHERE domain = ANY($1) AND key = ANY($2)";

pub(super) const SPENT: &str =
    "SELECT domain, key, spent FROM links WHERE domain = ANY($1) AND key = ANY($2)";

pub(super) const REVISION: &str =
    "SELECT generation, version FROM links WHERE domain = $1 AND key = $2 AND state NOT IN (2, 3)";

pub(super) const UPDATE: &str = "UPDATE links SET version = $5, target = $6, state = $7, updated_at = $8, expires_at = $9, \
     valid_since = $10, max_clicks = $11, visibility = $12, password_hash = $13, status = $14, \
     was_permanent = was_permanent OR $15, forward_query = $16, title = $17, tags = $18, tags_lower = $19 \
     WHERE domain = $1 AND key = $2 AND generation = $3 AND version = $4 AND state NOT IN (2, 3) RETURNING 1";

pub(super) const HAND_OVER: &str = "UPDATE links SET version = $5, owner = $6, updated_at = $7 \
     WHERE domain = $1 AND key = $2 AND state < 2 AND generation = $3 AND version = $4 RETURNING 1";

/// Turns a link that has the revision `$3`, `$4` into a tombstone; where `$6` is a time, only if it ended by then.
pub(super) const TOMBSTONE: &str = "UPDATE links SET state = 2, version = least(version + 1, 4294967295), updated_at = $5, \
     title = NULL, tags = NULL, tags_lower = NULL, password_hash = NULL \
     WHERE domain = $1 AND key = $2 AND generation = $3 AND version = $4 AND state NOT IN (2, 3) \
     AND ($6::bigint IS NULL OR state = 0 AND expires_at <= $6 OR state > 3 AND updated_at <= $6) \
     RETURNING domain, key, generation, version";

/// Tombstones whose quarantine has ended.
pub(super) const RELEASABLE: &str = "SELECT domain, key, generation, version, origin FROM links \
     WHERE state = 2 AND origin <> 0 AND NOT was_permanent AND updated_at <= $1 ORDER BY updated_at LIMIT $2";

/// Committed before [`RELEASE`].
pub(super) const REMEMBER: &str = "INSERT INTO released_links (domain, key, generation, origin) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (domain, key, generation) DO NOTHING";

pub(super) const RELEASE: &str = "DELETE FROM links WHERE domain = $1 AND key = $2 AND generation = $3 AND state = 2 \
     RETURNING domain, key, generation, version";

pub(super) const SPEND: &str = "UPDATE links SET spent = spent + CASE WHEN max_clicks IS NULL THEN 0 ELSE 1 END \
     WHERE domain = $1 AND key = $2 AND generation = $3 AND version = $4 AND state = 0 \
     AND (max_clicks IS NULL OR spent < max_clicks) RETURNING 1";

/// Whether the active link at this revision has no click left.
pub(super) const IS_EXHAUSTED: &str = "SELECT coalesce(spent >= max_clicks, false) FROM links \
     WHERE domain = $1 AND key = $2 AND generation = $3 AND version = $4 AND state = 0";

pub(super) const COUNT_LINKS: &str =
    "SELECT origin, state, count(*) FROM links GROUP BY origin, state";

pub(super) const COUNT_RELEASED: &str =
    "SELECT origin, count(*) FROM released_links GROUP BY origin";

pub(super) const BEGIN: &str = "INSERT INTO idempotency AS i (owner, name, fingerprint, token, version, created_at, plan) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (owner, name) DO UPDATE SET version = i.version \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const FORGET_RECORD: &str =
    "DELETE FROM idempotency WHERE owner = $1 AND name = $2 AND created_at < $3";

pub(super) const REPLACE_PLAN: &str = "UPDATE idempotency SET \
     plan = CASE WHEN version = $4::bigint - 1 THEN $5 ELSE plan END, version = greatest(version, $4) \
     WHERE owner = $1 AND name = $2 AND token = $3 \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const FINISH: &str = "UPDATE idempotency SET outcome = coalesce(outcome, $4) \
     WHERE owner = $1 AND name = $2 AND token = $3 \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const CANCEL: &str = "DELETE FROM idempotency \
     WHERE owner = $1 AND name = $2 AND token = $3 AND outcome IS NULL \
     RETURNING fingerprint, token, version, created_at, plan, outcome";

pub(super) const OLD_RECORDS: &str =
    "SELECT owner, name FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2";

pub(super) const PING: &str = "INSERT INTO pings AS p (slot, count) VALUES ($1, 1) \
     ON CONFLICT (slot) DO UPDATE SET count = p.count + 1";

/// A look-up of a key that no link has, and whether texts are in the order of their bytes, which lists need.
pub(super) const PING_READS: &str =
    "SELECT 'a' > 'B', (SELECT count(*) FROM links WHERE domain = 0 AND key = '')";

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    INSERT,
    FOLLOW_RELEASED,
    FIND_TOKEN,
    FIND_MANY,
    SPENT,
    REVISION,
    UPDATE,
    HAND_OVER,
    TOMBSTONE,
    RELEASABLE,
    REMEMBER,
    RELEASE,
    SPEND,
    IS_EXHAUSTED,
    COUNT_LINKS,
    COUNT_RELEASED,
    BEGIN,
    FORGET_RECORD,
    REPLACE_PLAN,
    FINISH,
    CANCEL,
    OLD_RECORDS,
    PING,
    PING_READS,
];
