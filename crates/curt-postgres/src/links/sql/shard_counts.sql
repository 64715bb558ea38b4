-- As many columns as the totals have, counted from the links of the shard $1 and from what was released of it.
WITH parts AS (
    SELECT origin, state, count(*) AS count FROM links WHERE shard = $1 GROUP BY origin, state
    UNION ALL
    SELECT origin, NULL, count FROM released_keys WHERE shard = $1
)
SELECT coalesce(sum(count) FILTER (WHERE origin = 0 AND state IS DISTINCT FROM 3), 0)::bigint AS created_alias,
       coalesce(sum(count) FILTER (WHERE origin = 1 AND state IS DISTINCT FROM 3), 0)::bigint AS created_ledger,
       coalesce(sum(count) FILTER (WHERE origin = 2 AND state IS DISTINCT FROM 3), 0)::bigint AS created_file,
       coalesce(sum(count) FILTER (WHERE origin = 3 AND state IS DISTINCT FROM 3), 0)::bigint AS created_claim,
       coalesce(sum(count) FILTER (WHERE origin = 4 AND state IS DISTINCT FROM 3), 0)::bigint AS created_id,
       coalesce(sum(count) FILTER (WHERE origin = 5 AND state IS DISTINCT FROM 3), 0)::bigint AS created_hash,
       coalesce(sum(count) FILTER (WHERE origin = 6 AND state IS DISTINCT FROM 3), 0)::bigint AS created_random,
       coalesce(sum(count) FILTER (WHERE state < 2), 0)::bigint AS live,
       coalesce(sum(count) FILTER (WHERE state = 2 OR state > 3), 0)::bigint AS deleted,
       coalesce(sum(count) FILTER (WHERE (state = 2 OR state > 3) AND origin = 1), 0)::bigint AS deleted_from_ledger,
       coalesce(sum(count) FILTER (WHERE state IS NULL AND origin = 1), 0)::bigint AS released_from_ledger,
       coalesce(sum(count) FILTER (WHERE state = 3), 0)::bigint AS seeded
FROM parts
