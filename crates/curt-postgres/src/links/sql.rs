//! The statements of the link store.
//!
//! The order in which a transaction comes to its locks is the same everywhere, so that no two wait for each other in a
//! circle: idempotency names, then links in the order of their ids, then the session's row of totals. Seeded rows are
//! locked without waiting, and so may come first.

/// Every column but the bucket of seeds, in the order of `record.rs`.
macro_rules! columns {
    () => {
        "domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, \
         valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, tags, \
         made_with"
    };
}

/// Links that came as one array per column; `tags` are arrays in text form.
macro_rules! arrays {
    () => {
        "$1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bigint[], \
         $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::smallint[], \
         $15::text[], $16::smallint[], $17::boolean[], $18::boolean[], $19::text[], $20::text[], $21::bigint[]"
    };
}

/// The generation that a link of `of` has when another one had its key before and was released; 0 if none had.
macro_rules! after_former {
    ($of:literal) => {
        concat!(
            "coalesce((SELECT least(former.generation + 1, 4294967295) FROM key_generations AS former WHERE former.domain = ",
            $of,
            ".domain AND former.key = ",
            $of,
            ".key), 0)"
        )
    };
}

/// Adds `given` where the ids are free.
macro_rules! new_links {
    () => {
        concat!(
            "new AS (INSERT INTO links (",
            columns!(),
            ") SELECT domain, key, target, owner, state, origin, greatest(generation, ",
            after_former!("given"),
            "), version, created_at, updated_at, \
             expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
             title, tags::text[], made_with FROM given ORDER BY domain, key COLLATE \"C\" \
             ON CONFLICT (domain, key) DO NOTHING \
             RETURNING domain, key, generation, state, origin, created_at, tags), "
        )
    };
}

/// Writes down the tags of the links in `from`.
macro_rules! tagged {
    ($from:literal) => {
        concat!(
            "tagged AS (INSERT INTO link_tags (tag, created_at, domain, key) \
             SELECT DISTINCT lower(tag COLLATE \"C\"), created_at, domain, key FROM ",
            $from,
            " CROSS JOIN LATERAL unnest(tags) AS tag ON CONFLICT DO NOTHING) "
        )
    };
}

/// Changes this session's row of totals by `n`, the one row of the query.
macro_rules! counted {
    ($changes:expr, $query:expr) => {
        concat!(
            "counted AS (UPDATE link_counts AS c SET ",
            $changes,
            " FROM (",
            $query,
            ") AS n WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0) "
        )
    };
}

/// Totals of links that came to be.
macro_rules! add_created {
    () => {
        "created_alias = c.created_alias + n.alias, created_ledger = c.created_ledger + n.ledger, \
         created_file = c.created_file + n.file, created_claim = c.created_claim + n.claim, \
         created_id = c.created_id + n.id, created_hash = c.created_hash + n.hash, \
         created_random = c.created_random + n.random, live = c.live + n.live, deleted = c.deleted + n.buried, \
         deleted_from_ledger = c.deleted_from_ledger + n.buried_from_ledger"
    };
}

/// What [`add_created`] adds, of the rows of the table that follows.
macro_rules! by_origin {
    () => {
        "count(*) FILTER (WHERE origin = 0) AS alias, count(*) FILTER (WHERE origin = 1) AS ledger, \
         count(*) FILTER (WHERE origin = 2) AS file, count(*) FILTER (WHERE origin = 3) AS claim, \
         count(*) FILTER (WHERE origin = 4) AS id, count(*) FILTER (WHERE origin = 5) AS hash, \
         count(*) FILTER (WHERE origin = 6) AS random, count(*) FILTER (WHERE state < 2) AS live, \
         count(*) FILTER (WHERE state = 2) AS buried, \
         count(*) FILTER (WHERE state = 2 AND origin = 1) AS buried_from_ledger"
    };
}

/// Answers with the ids that were free, and their generations.
pub(super) const INSERT: &str = concat!(
    "WITH given AS (SELECT * FROM unnest(",
    arrays!(),
    ") AS given (",
    columns!(),
    ")), ",
    new_links!(),
    tagged!("new"),
    ", ",
    counted!(
        add_created!(),
        concat!("SELECT count(*) AS rows, ", by_origin!(), " FROM new")
    ),
    "SELECT domain, key, generation FROM new"
);

/// Records requests that are new, each with the outcome that it counts on, and adds the links `$1` to `$21` of the
/// requests `$22`. Answers with the numbers of the requests that were recorded, and behind them with the links whose
/// generation follows that of a former one; fails if a link's id was taken.
pub(super) const INSERT_ONCE: &str = concat!(
    "WITH asked AS (SELECT * FROM unnest($23::bigint[], $24::text[], $25::bytea[], $26::bigint[], $27::text[]) \
     WITH ORDINALITY AS asked (owner, name, fingerprint, created_at, outcome, request)), \
     named AS (INSERT INTO idempotency (owner, name, fingerprint, created_at, outcome) \
     SELECT owner, name, fingerprint, created_at, outcome::text[] FROM asked ORDER BY owner, name COLLATE \"C\" \
     ON CONFLICT (owner, name) DO NOTHING RETURNING owner, name), \
     recorded AS (SELECT request FROM asked JOIN named USING (owner, name)), \
     given AS (SELECT * FROM unnest(",
    arrays!(),
    ", $22::bigint[]) AS given (",
    columns!(),
    ", request) WHERE request IN (SELECT request FROM recorded)), ",
    new_links!(),
    tagged!("new"),
    ", ",
    counted!(
        concat!(add_created!(), ", missing = n.rows - n.found"),
        concat!(
            "SELECT (SELECT count(*) FROM given) AS rows, count(*) AS found, ",
            by_origin!(),
            " FROM new"
        )
    ),
    "SELECT request, NULL AS domain, NULL AS key, NULL AS generation FROM recorded \
     UNION ALL SELECT NULL, domain, key, generation FROM new WHERE generation > 1"
);

/// Removes the records of some names that have grown too old.
pub(super) const FORGET_RECORDS: &str = "DELETE FROM idempotency AS i \
     USING unnest($1::bigint[], $2::text[], $3::bigint[]) AS asked (owner, name, oldest) \
     WHERE i.owner = asked.owner AND i.name = asked.name AND i.created_at < asked.oldest";

/// Writes the records that it finds, unchanged: what is read may have been committed without the confirmation of a
/// synchronous standby, by a server that crashed while it waited for one. The commit of this write has to wait for it
/// again, so that a repeated answer is as durable as the first one (L-1).
///
/// [`LOCK_RECORDS`] comes before it.
pub(super) const FIND_RECORDS: &str = "WITH asked AS MATERIALIZED (SELECT * \
     FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS asked (owner, name, request)), \
     written AS (UPDATE idempotency AS i SET created_at = i.created_at \
     FROM (SELECT DISTINCT owner, name FROM asked) AS named WHERE i.owner = named.owner AND i.name = named.name \
     RETURNING i.owner, i.name, i.fingerprint, i.outcome, i.created_at) \
     SELECT asked.request, w.fingerprint, w.outcome, w.created_at FROM asked \
     JOIN written AS w ON w.owner = asked.owner AND w.name = asked.name";

/// Locks what [`FIND_RECORDS`] writes in the next step, which then sees each record as it is, in the order in which
/// everybody comes to names.
pub(super) const LOCK_RECORDS: &str = "SELECT FROM unnest($1::bigint[], $2::text[]) AS asked (owner, name) \
     JOIN idempotency AS i ON i.owner = asked.owner AND i.name = asked.name ORDER BY i.owner, i.name FOR UPDATE OF i";

pub(super) const FORGET_OLD: &str = "WITH old AS MATERIALIZED (SELECT owner, name FROM idempotency \
     WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) \
     DELETE FROM idempotency AS i USING old WHERE i.owner = old.owner AND i.name = old.name";

/// Those of some ids that have a row.
pub(super) const TAKEN: &str = "SELECT given.domain, given.key \
     FROM unnest($1::bigint[], $2::text[]) AS given (domain, key) \
     WHERE EXISTS (SELECT FROM links AS l WHERE l.domain = given.domain AND l.key = given.key)";

pub(super) const FIND: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM links WHERE domain = $1 AND key = $2"
);

/// The revision of a link that is neither a tombstone nor nobody's.
pub(super) const REVISION: &str =
    "SELECT generation, version FROM links WHERE domain = $1 AND key = $2 AND state < 2";

/// Edits the link if it has the revision `$3`, `$4`. Its row is locked first, so that the tags that it had are known.
pub(super) const UPDATE: &str = concat!(
    "WITH before AS MATERIALIZED (SELECT domain, key, tags FROM links \
     WHERE domain = $1 AND key = $2 AND state < 2 AND generation = $3 AND version = $4 FOR UPDATE), \
     after AS (UPDATE links AS l SET version = $5, target = $6, state = $7, updated_at = $8, expires_at = $9, \
     valid_since = $10, max_clicks = $11, visibility = $12, password_hash = $13, status = $14, \
     was_permanent = l.was_permanent OR $15, forward_query = $16, title = $17, tags = $18 \
     FROM before AS b WHERE l.domain = b.domain AND l.key = b.key RETURNING l.*), \
     untagged AS (DELETE FROM link_tags AS t USING before AS b, after AS a \
     WHERE t.created_at = a.created_at AND t.domain = a.domain AND t.key = a.key \
     AND t.tag IN (SELECT lower(tag COLLATE \"C\") FROM unnest(b.tags) AS tag) \
     AND t.tag NOT IN (SELECT lower(tag COLLATE \"C\") FROM unnest(a.tags) AS tag)), ",
    tagged!("after"),
    "SELECT ",
    columns!(),
    " FROM after"
);

/// Turns what `before` holds into tombstones at `$1` (L-3).
macro_rules! buried {
    () => {
        concat!(
            "after AS (UPDATE links AS l SET state = 2, version = least(l.version + 1, 4294967295), updated_at = $1, \
             title = NULL, tags = NULL, password_hash = NULL \
             FROM before AS b WHERE l.domain = b.domain AND l.key = b.key RETURNING l.*), \
             untagged AS (DELETE FROM link_tags AS t USING before AS b \
             WHERE t.created_at = b.created_at AND t.domain = b.domain AND t.key = b.key \
             AND t.tag IN (SELECT lower(tag COLLATE \"C\") FROM unnest(b.tags) AS tag)), ",
            counted!(
                "live = c.live - n.rows, deleted = c.deleted + n.rows, \
                 deleted_from_ledger = c.deleted_from_ledger + n.from_ledger",
                "SELECT count(*) AS rows, count(*) FILTER (WHERE origin = 1) AS from_ledger FROM after"
            )
        )
    };
}

/// At the revision `$4`, `$5`, or at any where these are NULL.
pub(super) const DELETE: &str = concat!(
    "WITH before AS MATERIALIZED (SELECT domain, key, created_at, tags FROM links \
     WHERE domain = $2 AND key = $3 AND state < 2 \
     AND ($4::bigint IS NULL OR generation = $4) AND ($5::bigint IS NULL OR version = $5) FOR UPDATE), ",
    buried!(),
    "SELECT ",
    columns!(),
    " FROM after"
);

/// Of the links `$2`, `$3` at the revisions `$4`, `$5`, those that have expired at `$1`.
pub(super) const PURGE: &str = concat!(
    "WITH before AS MATERIALIZED (SELECT l.* FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) \
     AS due (domain, key, generation, version) CROSS JOIN LATERAL (SELECT domain, key, created_at, tags FROM links \
     WHERE links.domain = due.domain AND links.key = due.key AND links.generation = due.generation \
     AND links.version = due.version AND state = 0 AND expires_at <= $1 FOR UPDATE) AS l), ",
    buried!(),
    "SELECT domain, key FROM after"
);

pub(super) const EXPIRED: &str = "SELECT domain, key, generation, version FROM links \
     WHERE state = 0 AND expires_at <= $1 ORDER BY expires_at, domain, key LIMIT $2";

/// Tombstones whose quarantine has ended at `$1`, `$2` at most, locked: those whose generation is remembered (`""`) or is
/// not (`"NOT "`). `MATERIALIZED` because the planner may otherwise run the LIMIT once for every row that it joins.
macro_rules! due {
    ($not:literal) => {
        concat!(
            "WITH due AS MATERIALIZED (SELECT domain, key, generation FROM links AS l \
             WHERE state = 2 AND origin <> 0 AND NOT was_permanent AND updated_at <= $1 AND ",
            $not,
            "EXISTS (SELECT FROM key_generations AS g \
             WHERE g.domain = l.domain AND g.key = l.key AND g.generation >= l.generation) \
             ORDER BY updated_at LIMIT $2 FOR UPDATE OF l SKIP LOCKED)"
        )
    };
}

/// Remembers the generations of the links that [`RELEASE`] is about to remove. It is committed first: an insert whose
/// snapshot is older than this commit still meets the tombstone.
pub(super) const REMEMBER_GENERATIONS: &str = concat!(
    due!("NOT "),
    " INSERT INTO key_generations AS g (domain, key, generation) SELECT domain, key, generation FROM due \
     ORDER BY domain, key COLLATE \"C\" \
     ON CONFLICT (domain, key) DO UPDATE SET generation = greatest(g.generation, excluded.generation)"
);

/// Removes those tombstones whose generation is remembered.
pub(super) const RELEASE: &str = concat!(
    due!(""),
    ", gone AS (DELETE FROM links AS l USING due WHERE l.domain = due.domain AND l.key = due.key AND l.state = 2 \
     RETURNING l.domain, l.key, l.origin, l.generation), ",
    counted!(
        "deleted = c.deleted - n.rows, deleted_from_ledger = c.deleted_from_ledger - n.from_ledger, \
         released_from_ledger = c.released_from_ledger + n.from_ledger",
        "SELECT count(*) AS rows, count(*) FILTER (WHERE origin = 1) AS from_ledger FROM gone"
    ),
    "SELECT domain, key, generation FROM gone"
);

/// Adds rows that are nobody's. Their generation is that of the last link which had the key, 0 for a new one: the first
/// owner gets the next, like that of any new link.
pub(super) const SEED: &str = concat!(
    "WITH new AS (INSERT INTO links (domain, key, target, owner, state, origin, generation, version, created_at, \
     visibility, was_permanent, forward_query, seed_bucket) \
     SELECT domain, key, '', 0, 3, 3, coalesce((SELECT g.generation FROM key_generations AS g \
     WHERE g.domain = given.domain AND g.key = given.key), 0), 0, 0, 0, false, false, floor(random() * 256)::smallint \
     FROM unnest($1::bigint[], $2::text[]) AS given (domain, key) ORDER BY domain, key COLLATE \"C\" \
     ON CONFLICT (domain, key) DO NOTHING RETURNING 1), ",
    counted!(
        "seeded = c.seeded + n.rows",
        "SELECT count(*) AS rows FROM new"
    ),
    "SELECT count(*) FROM new"
);

/// Seeds of a domain from a bucket on, as many as are still wanted.
macro_rules! seeds {
    ($name:literal, $beyond:literal, $less:literal) => {
        concat!(
            $name,
            " AS MATERIALIZED (SELECT seed.* FROM wanted CROSS JOIN LATERAL (SELECT domain, key, generation FROM links \
             WHERE state = 3 AND links.domain = wanted.domain AND seed_bucket ",
            $beyond,
            " (SELECT bucket FROM start) ORDER BY seed_bucket LIMIT wanted.count",
            $less,
            " FOR UPDATE SKIP LOCKED) AS seed), "
        )
    };
}

/// Gives seeded rows to the links `$1` to `$21`, of which `$22` are the ranks within their domains; `$23` and `$24` say
/// how many are wanted per domain. Claimers begin at different buckets, so that they do not all pass over each other's
/// locked rows. With the name `$26`, only as a whole and with the record of it.
///
/// Answers with the place, key and generation of each, and at the place 0 with whether it was recorded.
pub(super) const CLAIM: &str = concat!(
    "WITH start AS MATERIALIZED (SELECT floor(random() * 256)::smallint AS bucket), \
     wanted AS (SELECT * FROM unnest($23::bigint[], $24::bigint[]) AS wanted (domain, count) \
     WHERE NOT EXISTS (SELECT FROM idempotency AS i WHERE i.owner = $25 AND i.name = $26)), ",
    seeds!("front", ">=", ""),
    seeds!(
        "back",
        "<",
        " - (SELECT count(*) FROM front WHERE front.domain = wanted.domain)"
    ),
    "seeds AS (SELECT domain, key AS seed, generation AS former, row_number() OVER (PARTITION BY domain) AS rank \
     FROM (SELECT * FROM front UNION ALL SELECT * FROM back) AS found), \
     given AS (SELECT * FROM unnest(",
    arrays!(),
    ", $22::bigint[]) WITH ORDINALITY AS given (",
    columns!(),
    ", rank, place)), \
     matched AS (SELECT given.*, seed, former FROM given LEFT JOIN seeds USING (domain, rank)), \
     served AS (SELECT * FROM matched WHERE NOT EXISTS \
     (SELECT FROM matched AS none WHERE none.seed IS NULL AND none.place <= matched.place)), \
     record AS (INSERT INTO idempotency (owner, name, fingerprint, created_at, outcome) \
     SELECT $25, $26, $27, $28, coalesce(array_agg(domain || '/' || seed ORDER BY place), '{}') FROM served \
     HAVING $26 IS NOT NULL AND count(*) = (SELECT count(*) FROM given) \
     ON CONFLICT (owner, name) DO NOTHING RETURNING 1), \
     claimed AS (UPDATE links AS l SET target = s.target, owner = s.owner, state = s.state, origin = s.origin, \
     generation = least(s.former + 1, 4294967295), version = 1, created_at = s.created_at, \
     updated_at = s.updated_at, expires_at = s.expires_at, valid_since = s.valid_since, max_clicks = s.max_clicks, \
     visibility = s.visibility, password_hash = s.password_hash, status = s.status, was_permanent = s.was_permanent, \
     forward_query = s.forward_query, title = s.title, tags = s.tags::text[], made_with = s.made_with, \
     seed_bucket = NULL FROM served AS s WHERE l.domain = s.domain AND l.key = s.seed AND l.state = 3 \
     AND ($26 IS NULL OR EXISTS (SELECT FROM record)) RETURNING l.*, s.place), ",
    tagged!("claimed"),
    ", ",
    counted!(
        concat!(add_created!(), ", seeded = c.seeded - n.rows"),
        concat!("SELECT count(*) AS rows, ", by_origin!(), " FROM claimed")
    ),
    "SELECT place, key, generation FROM claimed UNION ALL SELECT 0, NULL, count(*) FROM record"
);

/// Takes a visit from the active link `$1`, `$2` at the revision `$3`, `$4`, where it has one left. The link is locked
/// against edits: a visit is never taken by a limit that is gone.
///
/// Answers with the limit and how many visits were taken, or with nothing when there is no such link.
pub(super) const SPEND: &str = "WITH seen AS MATERIALIZED (SELECT max_clicks FROM links \
     WHERE domain = $1 AND key = $2 AND generation = $3 AND version = $4 AND state = 0 FOR SHARE), \
     taken AS (INSERT INTO link_clicks AS v (domain, key, spent) SELECT $1, $2, 1 FROM seen WHERE max_clicks > 0 \
     ON CONFLICT (domain, key) DO UPDATE SET spent = v.spent + 1 WHERE v.spent < (SELECT max_clicks FROM seen) \
     RETURNING 1) \
     SELECT max_clicks, (SELECT count(*) FROM taken) FROM seen";

pub(super) const SPENT: &str = "SELECT spent FROM link_clicks WHERE domain = $1 AND key = $2";

pub(super) const COUNTS: &str = "SELECT sum(created_alias)::bigint, sum(created_ledger)::bigint, \
     sum(created_file)::bigint, sum(created_claim)::bigint, sum(created_id)::bigint, sum(created_hash)::bigint, \
     sum(created_random)::bigint, sum(live)::bigint, sum(deleted)::bigint, sum(deleted_from_ledger)::bigint, \
     sum(released_from_ledger)::bigint, sum(seeded)::bigint FROM link_counts";

pub(super) const PING: &str =
    "UPDATE link_counts SET pings = pings + 1 WHERE slot = pg_backend_pid() % 256";

/// Reads the table as a look-up does, and tells where the primary is in its log; a standby does not.
pub(super) const PING_READS: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL \
     ELSE pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint END, EXISTS (SELECT FROM links)";

/// The columns of a list, for `list.rs` to choose rows.
pub(super) const COLUMNS: &str = columns!();
