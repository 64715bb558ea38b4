-- The generation is that of the last link which had the key, 0 for a new one: the first owner gets the next.
WITH new AS (
    INSERT INTO links (
        domain, key, target, owner, state, origin, generation, version, created_at, visibility, was_permanent,
        forward_query, seed_bucket, shard
    )
    SELECT domain, key, '', 0, 3, 3, coalesce((
               SELECT g.generation FROM key_generations AS g
               WHERE g.shard = given.shard AND g.domain = given.domain AND g.key = given.key
           ), 0), 0, 0, 0, false, false, floor(random() * 256)::smallint, shard
    FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[]) AS given (domain, key, shard, epoch)
    WHERE NOT EXISTS (SELECT FROM shard_seals AS s WHERE s.shard = given.shard AND s.epoch > given.epoch)
    ORDER BY domain, key COLLATE "C"
    ON CONFLICT (domain, key) DO NOTHING RETURNING 1
), counted AS (
    UPDATE link_counts AS c SET seeded = c.seeded + n.rows FROM (SELECT count(*) AS rows FROM new) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT count(*) FROM new
