WITH taken AS MATERIALIZED (
    SELECT id, key FROM keys
    WHERE keys.status = 0 AND keys.id >= (SELECT head FROM key_head)
      AND NOT EXISTS (SELECT FROM key_batches WHERE name = $1)
    ORDER BY id LIMIT $2
), moved AS (
    UPDATE key_head SET head = last.id + 1 FROM (SELECT max(id) AS id FROM taken) AS last WHERE last.id IS NOT NULL
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
