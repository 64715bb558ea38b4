WITH open AS (
    -- Those of the keys $1 that are in open batches.
    SELECT unnest(keys) AS key FROM key_batches
    INTERSECT SELECT unnest($1::text[]) WHERE EXISTS (SELECT FROM key_batches)
), found AS MATERIALIZED (
    -- By the index of keys, as an array and apart from any other condition: before the first statistics the planner takes
    -- an unused key for rare, and reads all of them.
    SELECT ctid, id, status FROM keys WHERE key = ANY (ARRAY(SELECT key FROM open))
), again AS (
    UPDATE keys SET status = 1
    WHERE keys.ctid = ANY (ARRAY(
        -- Rows that this transaction has written or locked, so that they stay where they are.
        SELECT keys.ctid FROM found AS keys WHERE keys.status = 0 AND keys.id >= (SELECT head FROM key_head)
    ))
    RETURNING keys.key
), total AS (
    SELECT count(*) AS n FROM again
), counted AS (
    UPDATE key_counts SET free = free - n, recycled = recycled - n FROM total
    WHERE slot = pg_backend_pid() % 16 AND n > 0
)
SELECT n FROM total
