WITH closed AS (
    DELETE FROM key_batches WHERE name = $1 RETURNING keys, cardinality(keys) AS n
), back AS (
    SELECT unnest(keys) AS key FROM closed INTERSECT SELECT unnest($2::text[])
), unmoved AS (
    DELETE FROM keys_used WHERE key = ANY (ARRAY(SELECT key FROM back))
), freed AS (
    INSERT INTO keys (key)
    SELECT key FROM back ORDER BY hashtextextended(key, 0)
    ON CONFLICT (key) DO UPDATE SET status = 0, id = nextval('key_ids')
    WHERE NOT (keys.status = 0 AND keys.id >= (SELECT head FROM key_head))
    RETURNING 1
), total AS (
    SELECT n, (SELECT count(*) FROM freed) AS freed FROM closed
), counted AS (
    UPDATE key_counts SET open = open - n, free = free + freed FROM total
    WHERE slot = pg_backend_pid() % 16 AND n > 0
)
SELECT freed FROM total
