-- Of the shards $1, notes that so many keys ($3) of the origins $2 were released, if it is more than is known, and counts
-- their links among those that were created. $4 are the epochs at which shards were routed.
WITH more AS MATERIALIZED (
    SELECT given.shard, given.origin, given.count, given.count - coalesce(r.count, 0) AS difference
    FROM unnest($1::smallint[], $2::smallint[], $3::bigint[]) AS given (shard, origin, count)
    LEFT JOIN released_keys AS r ON r.shard = given.shard AND r.origin = given.origin
    WHERE given.count > coalesce(r.count, 0) AND NOT EXISTS (
        SELECT FROM shard_seals AS s WHERE s.shard = given.shard AND s.epoch > coalesce(($4::bigint[])[s.shard + 1], 0)
    )
), noted AS (
    INSERT INTO released_keys AS r (shard, origin, count) SELECT shard, origin, count FROM more ORDER BY shard, origin
    ON CONFLICT (shard, origin) DO UPDATE SET count = excluded.count
), counted AS (
    UPDATE link_counts AS c
    SET created_alias = c.created_alias + n.alias, created_ledger = c.created_ledger + n.ledger,
        created_file = c.created_file + n.file, created_claim = c.created_claim + n.claim,
        created_id = c.created_id + n.id, created_hash = c.created_hash + n.hash, created_random = c.created_random + n.random
    FROM (
        SELECT count(*) AS rows,
               coalesce(sum(difference) FILTER (WHERE origin = 0), 0)::bigint AS alias,
               coalesce(sum(difference) FILTER (WHERE origin = 1), 0)::bigint AS ledger,
               coalesce(sum(difference) FILTER (WHERE origin = 2), 0)::bigint AS file,
               coalesce(sum(difference) FILTER (WHERE origin = 3), 0)::bigint AS claim,
               coalesce(sum(difference) FILTER (WHERE origin = 4), 0)::bigint AS id,
               coalesce(sum(difference) FILTER (WHERE origin = 5), 0)::bigint AS hash,
               coalesce(sum(difference) FILTER (WHERE origin = 6), 0)::bigint AS random
        FROM more
    ) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT 1
