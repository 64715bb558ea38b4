-- MATERIALIZED because the planner may otherwise run the LIMIT once for every row that it joins.
WITH due AS MATERIALIZED (
    SELECT shard, domain, key, generation FROM links AS l
    WHERE state = 2 AND origin <> 0 AND NOT was_permanent AND updated_at <= $1 AND NOT EXISTS (
        SELECT FROM key_generations AS g
        WHERE g.shard = l.shard AND g.domain = l.domain AND g.key = l.key AND g.generation >= l.generation
    ) AND NOT EXISTS (
        SELECT FROM shard_seals AS s WHERE s.shard = l.shard AND s.epoch > coalesce(($3::bigint[])[s.shard + 1], 0)
    )
    ORDER BY updated_at LIMIT $2 FOR UPDATE OF l SKIP LOCKED
)
INSERT INTO key_generations AS g (shard, domain, key, generation)
SELECT shard, domain, key, generation FROM due ORDER BY shard, domain, key COLLATE "C"
ON CONFLICT (shard, domain, key) DO UPDATE SET generation = greatest(g.generation, excluded.generation)
