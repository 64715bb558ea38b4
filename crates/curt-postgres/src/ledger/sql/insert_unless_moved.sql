WITH new AS (
    INSERT INTO keys (key)
    SELECT key FROM unnest($1::text[]) AS key
    WHERE ($2::bigint IS NULL OR EXISTS (SELECT FROM key_owner WHERE fencing_token <= $2))
      AND NOT EXISTS (SELECT FROM keys_used AS used WHERE used.key = key.key)
    ORDER BY hashtextextended(key, 0)
    ON CONFLICT DO NOTHING
    RETURNING 1
), total AS (
    SELECT count(*) AS n FROM new
), counted AS (
    UPDATE key_counts SET minted = minted + n, free = free + n FROM total
    WHERE slot = pg_backend_pid() % 16 AND n > 0
)
SELECT n, $2::bigint IS NULL OR EXISTS (SELECT FROM key_owner WHERE fencing_token <= $2) FROM total
