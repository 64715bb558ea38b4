//! The statements of the ledger.
//!
//! The order in which a transaction comes to its locks is the same everywhere, so that no two wait for each other in a
//! circle: keys (in the order of their hashes, which also keeps neighbours in the alphabet apart), then batches, then
//! the one row of totals.

/// `keys` ∩ what is unused; see the migration.
macro_rules! unused {
    () => {
        "keys.status = 0 AND keys.id >= (SELECT head FROM key_head)"
    };
}

/// Changes this session's row of totals by the `n` of a query that ran before it.
macro_rules! counted {
    ($changes:literal, $from:literal) => {
        concat!(
            "counted AS (UPDATE key_counts SET ",
            $changes,
            " FROM ",
            $from,
            " WHERE slot = pg_backend_pid() % 16 AND n > 0)"
        )
    };
}

/// The keys of a new batch. `FOR UPDATE SKIP LOCKED` so that takers neither share a key nor wait for each other, and
/// `MATERIALIZED` because the planner may otherwise run the LIMIT once for every row that it joins (K-3).
macro_rules! picked {
    () => {
        concat!(
            "WITH picked AS MATERIALIZED (SELECT ctid FROM keys WHERE ", unused!(),
            " AND NOT EXISTS (SELECT FROM key_batches WHERE name = $1) ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED), "
        )
    };
}

/// The rows of the picked keys, which are locked and so stay where they are: by their places, which is faster than by an
/// index. As an array, because a join is left to the planner: before the first statistics it takes the table for small,
/// and reads all of it for every batch.
macro_rules! these {
    () => {
        "keys.status = 0 AND keys.ctid = ANY (ARRAY(SELECT ctid FROM picked))"
    };
}

/// Records what `taken` holds as the batch, counts it, and answers with its keys; or with those of the open batch of
/// that name.
macro_rules! recorded {
    () => {
        concat!(
            "batch AS (INSERT INTO key_batches (name, taken_at, wanted, keys) ",
            "SELECT $1, $3, $2, array_agg(key) FROM taken HAVING count(*) > 0 ",
            "RETURNING keys, cardinality(keys) AS n), ",
            counted!("free = free - n, open = open + n", "batch"),
            " SELECT keys FROM batch UNION ALL SELECT keys FROM key_batches WHERE name = $1"
        )
    };
}

/// Those of the keys `$1` that are in open batches.
macro_rules! taken_meanwhile {
    () => {
        "WITH open AS (SELECT unnest(keys) AS key FROM key_batches \
         INTERSECT SELECT unnest($1::text[]) WHERE EXISTS (SELECT FROM key_batches)), "
    };
}

/// The places of the rows of the keys that a query `of` names. By the index of keys, as an array and apart from any other
/// condition: before the first statistics the planner takes an unused key for rare, and reads all of them.
macro_rules! found {
    ($of:literal) => {
        concat!(
            "found AS MATERIALIZED (SELECT ctid, id, status FROM keys WHERE key = ANY (ARRAY(SELECT key FROM ",
            $of,
            "))), "
        )
    };
}

/// The found rows that are unused. This transaction has written or locked them, so that they stay where they are.
macro_rules! found_unused {
    () => {
        concat!(
            "keys.ctid = ANY (ARRAY(SELECT keys.ctid FROM found AS keys WHERE ",
            unused!(),
            "))"
        )
    };
}

macro_rules! unrecycled {
    () => {
        concat!(
            "total AS (SELECT count(*) AS n FROM again), ",
            counted!("free = free - n, recycled = recycled - n", "total"),
            " SELECT n FROM total"
        )
    };
}

/// A call that is repeated under the same name may run beside its first try, which nobody waits for any more. This one
/// then has to wait for it, and see what it did: hence a statement of its own before the take.
pub(super) const LOCK_NAME: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

pub(super) const TAKE_DELETING: &str = concat!(
    picked!(),
    "taken AS (DELETE FROM keys WHERE ",
    these!(),
    " RETURNING keys.key), ",
    recorded!()
);

pub(super) const TAKE_MARKING: &str = concat!(
    picked!(),
    "taken AS (UPDATE keys SET status = 1 WHERE ",
    these!(),
    " RETURNING keys.key), ",
    recorded!()
);

pub(super) const TAKE_MOVING: &str = concat!(
    picked!(),
    "taken AS (DELETE FROM keys WHERE ",
    these!(),
    " RETURNING keys.key), \
     moved AS (INSERT INTO keys_used (key) SELECT key FROM taken ON CONFLICT DO NOTHING), ",
    recorded!()
);

/// Ranges: no row is touched, so there are no dead ones to pass, and the scan begins where the last one ended. The head
/// must be locked by an earlier statement: this one has to see what the taker before it left.
pub(super) const LOCK_HEAD: &str = "SELECT $1::text, head FROM key_head FOR UPDATE";

pub(super) const TAKE_RANGE: &str = concat!(
    "WITH taken AS MATERIALIZED (SELECT id, key FROM keys WHERE ",
    unused!(),
    " AND NOT EXISTS (SELECT FROM key_batches WHERE name = $1) ORDER BY id LIMIT $2), \
     moved AS (UPDATE key_head SET head = last.id + 1 FROM (SELECT max(id) AS id FROM taken) last \
     WHERE last.id IS NOT NULL), ",
    recorded!()
);

/// Ranges: whoever adds rows does so alone until it commits, so that ids become visible in their order and no range is
/// passed over by the head before its rows are there.
pub(super) const LOCK_TAIL: &str = "SELECT pg_advisory_xact_lock(x'6b657973'::bigint)";

/// Remembers the fencing token `$1`, if it is the highest. A statement of its own, so that the next one sees it.
pub(super) const RAISE_FENCE: &str = "UPDATE key_owner SET fence = $1 WHERE fence < $1";

/// Whether an owner with the fencing token `$2` may insert; without a fencing token everybody may.
macro_rules! passes_fence {
    () => {
        "($2::bigint IS NULL OR EXISTS (SELECT FROM key_owner WHERE fence <= $2))"
    };
}

macro_rules! insert {
    ($unless:literal) => {
        concat!(
            "WITH new AS (INSERT INTO keys (key) SELECT key FROM unnest($1::text[]) key WHERE ",
            passes_fence!(),
            $unless,
            " ORDER BY hashtextextended(key, 0) ON CONFLICT DO NOTHING RETURNING 1), \
             total AS (SELECT count(*) AS n FROM new), ",
            counted!("minted = minted + n, free = free + n", "total"),
            " SELECT n, ",
            passes_fence!(),
            " FROM total"
        )
    };
}

pub(super) const INSERT: &str = insert!("");

pub(super) const INSERT_UNLESS_MOVED: &str =
    insert!(" AND NOT EXISTS (SELECT FROM keys_used used WHERE used.key = key.key)");

/// Undoes the insert of keys that are in open batches, and of those that another taker moved while we waited for it.
/// A statement of its own, because only then it sees what was committed in the meantime.
pub(super) const UNINSERT: &str = concat!(
    taken_meanwhile!(),
    found!("open"),
    "gone AS (DELETE FROM keys WHERE ",
    found_unused!(),
    " RETURNING 1), \
     total AS (SELECT count(*) AS n FROM gone), ",
    counted!("minted = minted - n, free = free - n", "total"),
    " SELECT n FROM total"
);

pub(super) const UNINSERT_MOVED: &str = concat!(
    "WITH known AS (SELECT key FROM keys_used WHERE key = ANY ($1)), ",
    found!("known"),
    "gone AS (DELETE FROM keys WHERE ",
    found_unused!(),
    " RETURNING 1), \
     total AS (SELECT count(*) AS n FROM gone), ",
    counted!("minted = minted - n, free = free - n", "total"),
    " SELECT n FROM total"
);

/// Closes the batch and frees those of its keys that are in `$2`, whatever its form did with them.
pub(super) const GIVE_BACK: &str = concat!(
    "WITH closed AS (DELETE FROM key_batches WHERE name = $1 RETURNING keys, cardinality(keys) AS n), \
     back AS (SELECT unnest(keys) AS key FROM closed INTERSECT SELECT unnest($2::text[])), \
     unmoved AS (DELETE FROM keys_used WHERE key = ANY (ARRAY(SELECT key FROM back))), \
     freed AS (INSERT INTO keys (key) SELECT key FROM back ORDER BY hashtextextended(key, 0) \
     ON CONFLICT (key) DO UPDATE SET status = 0, id = nextval('key_ids') WHERE NOT (",
    unused!(),
    ") RETURNING 1), \
     total AS (SELECT n, (SELECT count(*) FROM freed) AS freed FROM closed), ",
    counted!("open = open - n, free = free + freed", "total"),
    " SELECT freed FROM total"
);

pub(super) const CLOSE: &str = concat!(
    "WITH closed AS (DELETE FROM key_batches WHERE name = ANY ($1) RETURNING cardinality(keys) AS n), \
     total AS (SELECT sum(n) AS n FROM closed), ",
    counted!("open = open - n", "total"),
    " SELECT FROM total"
);

pub(super) const RECYCLE: &str = concat!(
    "WITH back AS (SELECT unnest($1::text[]) AS key EXCEPT SELECT unnest(keys) FROM key_batches), \
     unmoved AS (DELETE FROM keys_used WHERE key = ANY (ARRAY(SELECT key FROM back))), \
     freed AS (INSERT INTO keys (key) SELECT key FROM back ORDER BY hashtextextended(key, 0) \
     ON CONFLICT (key) DO UPDATE SET status = 0, id = nextval('key_ids') WHERE NOT (",
    unused!(),
    ") RETURNING 1), \
     total AS (SELECT count(*) AS n FROM freed), ",
    counted!("free = free + n, recycled = recycled + n", "total"),
    " SELECT n FROM total"
);

/// Undoes the recycling of keys that were unused before and that a taker took while we waited for it.
pub(super) const UNRECYCLE_DELETING: &str = concat!(
    taken_meanwhile!(),
    found!("open"),
    "again AS (DELETE FROM keys WHERE ",
    found_unused!(),
    " RETURNING keys.key), ",
    unrecycled!()
);

pub(super) const UNRECYCLE_MARKING: &str = concat!(
    taken_meanwhile!(),
    found!("open"),
    "again AS (UPDATE keys SET status = 1 WHERE ",
    found_unused!(),
    " RETURNING keys.key), ",
    unrecycled!()
);

pub(super) const UNRECYCLE_MOVING: &str = concat!(
    taken_meanwhile!(),
    found!("open"),
    "again AS (DELETE FROM keys WHERE ",
    found_unused!(),
    " RETURNING keys.key), \
     moved AS (INSERT INTO keys_used (key) SELECT key FROM again ON CONFLICT DO NOTHING), ",
    unrecycled!()
);

pub(super) const OPEN_BATCHES: &str = "SELECT name, taken_at, keys FROM key_batches WHERE taken_at <= $1 ORDER BY taken_at, seq LIMIT $2";

pub(super) const COUNTS: &str = "SELECT sum(minted)::bigint, sum(free)::bigint, sum(open)::bigint, \
     sum(recycled)::bigint FROM key_counts";

/// By the engine's own estimate, which is free: counting them means reading the table.
pub(super) const DEAD_ROWS: &str = "SELECT pg_stat_get_dead_tuples('keys'::regclass) + pg_stat_get_dead_tuples('key_batches'::regclass)";
