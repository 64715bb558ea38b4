//! The statements of the ledger.
//!
//! The order in which a transaction comes to its locks is the same everywhere, so that no two wait for each other in a
//! circle: keys (in the order of their hashes, which also keeps neighbours in the alphabet apart), then batches, then
//! the session's row of totals. A key is unused under the condition that the migration gives.

/// A call that is repeated under the same name may run beside its first try, which nobody waits for any more. This one
/// then has to wait for it, and see what it did: hence a statement of its own before the take.
pub(super) const LOCK_NAME: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/// Takes up to `$2` unused keys as the batch `$1` at `$3`, counts them, and answers with them; or with the keys of the
/// open batch of that name. The forms differ in what becomes of the rows.
pub(super) const TAKE_DELETING: &str = include_str!("sql/take_deleting.sql");
pub(super) const TAKE_MARKING: &str = include_str!("sql/take_marking.sql");
pub(super) const TAKE_MOVING: &str = include_str!("sql/take_moving.sql");

/// Ranges: no row is touched, so there are no dead ones to pass, and the scan begins where the last one ended. The head
/// must be locked by an earlier statement: this one has to see what the taker before it left.
pub(super) const LOCK_HEAD: &str = "SELECT $1::text, head FROM key_head FOR UPDATE";
pub(super) const TAKE_RANGE: &str = include_str!("sql/take_range.sql");

/// Ranges: a process that adds rows does so alone until it commits, so that ids become visible in their order and no range
/// is passed over by the head before its rows are there.
pub(super) const LOCK_TAIL: &str = "SELECT pg_advisory_xact_lock(x'6b657973'::bigint)";

/// Remembers the fencing token `$1`, if it is the highest. A statement of its own, so that the next one sees it.
pub(super) const RAISE_FENCING_TOKEN: &str =
    "UPDATE key_owner SET fencing_token = $1 WHERE fencing_token < $1";

/// Adds the keys `$1` as unused where they are unknown. An owner whose fencing token `$2` is not the highest adds none;
/// without a fencing token every process may. Answers with their number, and whether the owner was allowed to.
pub(super) const INSERT: &str = include_str!("sql/insert.sql");
pub(super) const INSERT_UNLESS_MOVED: &str = include_str!("sql/insert_unless_moved.sql");

/// Undoes the insert of keys that are in open batches, and of those that another taker moved while we waited for it.
/// A statement of its own, because only then it sees what was committed in the meantime.
pub(super) const UNINSERT: &str = include_str!("sql/uninsert.sql");
pub(super) const UNINSERT_MOVED: &str = include_str!("sql/uninsert_moved.sql");

/// Closes the batch `$1` and frees those of its keys that are in `$2`, whatever its form did with them.
pub(super) const GIVE_BACK: &str = include_str!("sql/give_back.sql");

pub(super) const CLOSE: &str = "WITH closed AS (DELETE FROM key_batches WHERE name = ANY ($1) \
     RETURNING cardinality(keys) AS n), total AS (SELECT sum(n) AS n FROM closed), \
     counted AS (UPDATE key_counts SET open = open - n FROM total WHERE slot = pg_backend_pid() % 16 AND n > 0) \
     SELECT FROM total";

/// Frees the used keys `$1`.
pub(super) const RECYCLE: &str = include_str!("sql/recycle.sql");

/// Undoes the recycling of keys that were unused before and that a taker took while we waited for it.
pub(super) const UNRECYCLE_DELETING: &str = include_str!("sql/unrecycle_deleting.sql");
pub(super) const UNRECYCLE_MARKING: &str = include_str!("sql/unrecycle_marking.sql");
pub(super) const UNRECYCLE_MOVING: &str = include_str!("sql/unrecycle_moving.sql");

pub(super) const OPEN_BATCHES: &str = "SELECT name, taken_at, keys FROM key_batches WHERE taken_at <= $1 \
     ORDER BY taken_at, seq LIMIT $2";

pub(super) const COUNTS: &str = "SELECT sum(minted)::bigint, sum(free)::bigint, sum(open)::bigint, \
     sum(recycled)::bigint FROM key_counts";

/// By the engine's own estimate, which is free: counting them means reading the table.
pub(super) const DEAD_ROWS: &str = "SELECT pg_stat_get_dead_tuples('keys'::regclass) \
     + pg_stat_get_dead_tuples('key_batches'::regclass)";
