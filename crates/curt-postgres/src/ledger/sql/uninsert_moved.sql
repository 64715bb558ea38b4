WITH known AS (
    SELECT key FROM keys_used WHERE key = ANY ($1)
), found AS MATERIALIZED (
    -- By the index of keys, as an array and apart from any other condition: before the first statistics the planner takes
    -- an unused key for rare, and reads all of them.
    SELECT ctid, id, status FROM keys WHERE key = ANY (ARRAY(SELECT key FROM known))
), gone AS (
    DELETE FROM keys
    WHERE keys.ctid = ANY (ARRAY(
        -- Rows that this transaction has written or locked, so that they stay where they are.
        SELECT keys.ctid FROM found AS keys WHERE keys.status = 0 AND keys.id >= (SELECT head FROM key_head)
    ))
    RETURNING 1
), total AS (
    SELECT count(*) AS n FROM gone
), counted AS (
    UPDATE key_counts SET minted = minted - n, free = free - n FROM total
    WHERE slot = pg_backend_pid() % 16 AND n > 0
)
SELECT n FROM total
