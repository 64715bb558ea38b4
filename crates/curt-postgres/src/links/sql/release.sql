WITH due AS MATERIALIZED (
    SELECT domain, key, generation FROM links AS l
    WHERE state = 2 AND origin <> 0 AND NOT was_permanent AND updated_at <= $1 AND EXISTS (
        SELECT FROM key_generations AS g
        WHERE g.shard = l.shard AND g.domain = l.domain AND g.key = l.key AND g.generation >= l.generation
    ) AND NOT EXISTS (
        SELECT FROM shard_seals AS s WHERE s.shard = l.shard AND s.epoch > coalesce(($3::bigint[])[s.shard + 1], 0)
    )
    ORDER BY updated_at LIMIT $2 FOR UPDATE OF l SKIP LOCKED
), gone AS (
    DELETE FROM links AS l USING due WHERE l.domain = due.domain AND l.key = due.key AND l.state = 2
    RETURNING l.domain, l.key, l.origin, l.generation, l.version, l.shard
), released AS (
    INSERT INTO released_keys AS r (shard, origin, count)
    SELECT shard, origin, count(*) FROM gone GROUP BY shard, origin ORDER BY shard, origin
    ON CONFLICT (shard, origin) DO UPDATE SET count = r.count + excluded.count
), counted AS (
    UPDATE link_counts AS c
    SET deleted = c.deleted - n.rows, deleted_from_ledger = c.deleted_from_ledger - n.from_ledger
    FROM (SELECT count(*) AS rows, count(*) FILTER (WHERE origin = 1) AS from_ledger FROM gone) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT domain, key, generation, version FROM gone
