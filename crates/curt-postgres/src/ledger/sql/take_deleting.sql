-- FOR UPDATE SKIP LOCKED so that takers neither share a key nor wait for each other, and MATERIALIZED because the planner
-- may otherwise run the LIMIT once for every row that it joins (K-3).
WITH picked AS MATERIALIZED (
    SELECT ctid FROM keys
    WHERE keys.status = 0 AND keys.id >= (SELECT head FROM key_head)
      AND NOT EXISTS (SELECT FROM key_batches WHERE name = $1)
    ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
), taken AS (
    -- The picked rows are locked and so stay where they are: by their places, which is faster than by an index. As an
    -- array, because a join is left to the planner: before the first statistics it takes the table for small, and reads
    -- all of it for every batch.
    DELETE FROM keys WHERE keys.status = 0 AND keys.ctid = ANY (ARRAY(SELECT ctid FROM picked))
    RETURNING keys.key
), batch AS (
    INSERT INTO key_batches (name, taken_at, wanted, keys)
    SELECT $1, $3, $2, array_agg(key) FROM taken HAVING count(*) > 0
    RETURNING keys, cardinality(keys) AS n
), counted AS (
    UPDATE key_counts SET free = free - n, open = open + n FROM batch
    WHERE slot = pg_backend_pid() % 16 AND n > 0
)
-- The keys of the new batch, or of the open one of that name.
SELECT keys FROM batch UNION ALL SELECT keys FROM key_batches WHERE name = $1
