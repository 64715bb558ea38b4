WITH back AS (
    SELECT unnest($1::text[]) AS key EXCEPT SELECT unnest(keys) FROM key_batches
), unmoved AS (
    DELETE FROM keys_used WHERE key = ANY (ARRAY(SELECT key FROM back))
), freed AS (
    INSERT INTO keys (key)
    SELECT key FROM back ORDER BY hashtextextended(key, 0)
    ON CONFLICT (key) DO UPDATE SET status = 0, id = nextval('key_ids')
    WHERE NOT (keys.status = 0 AND keys.id >= (SELECT head FROM key_head))
    RETURNING 1
), total AS (
    SELECT count(*) AS n FROM freed
), counted AS (
    UPDATE key_counts SET free = free + n, recycled = recycled + n FROM total
    WHERE slot = pg_backend_pid() % 16 AND n > 0
)
SELECT n FROM total
