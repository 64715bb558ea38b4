WITH settled AS (
    UPDATE shard_copies SET state = $5, fence = $2 WHERE shard = $1 AND state = $4 AND fence <= $2 RETURNING 1
), counted AS (
    UPDATE link_counts AS c
    SET created_alias = c.created_alias + ($3::bigint[])[1], created_ledger = c.created_ledger + ($3::bigint[])[2],
        created_file = c.created_file + ($3::bigint[])[3], created_claim = c.created_claim + ($3::bigint[])[4],
        created_id = c.created_id + ($3::bigint[])[5], created_hash = c.created_hash + ($3::bigint[])[6],
        created_random = c.created_random + ($3::bigint[])[7], live = c.live + ($3::bigint[])[8],
        deleted = c.deleted + ($3::bigint[])[9], deleted_from_ledger = c.deleted_from_ledger + ($3::bigint[])[10],
        seeded = c.seeded + ($3::bigint[])[11]
    WHERE c.slot = pg_backend_pid() % 256 AND EXISTS (SELECT FROM settled)
)
-- The state is that of before this statement.
SELECT EXISTS (SELECT FROM settled) OR EXISTS (SELECT FROM shard_copies WHERE shard = $1 AND state = $5 AND fence <= $2)
