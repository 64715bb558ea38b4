-- Takes away the links $1, $2 that still have the revisions $3, $4, to make room for what comes in their place. $5 are the
-- epochs at which shards were routed.
WITH gone AS (
    DELETE FROM links AS l
    USING unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS seen (domain, key, generation, version)
    WHERE l.domain = seen.domain AND l.key = seen.key AND l.generation = seen.generation AND l.version = seen.version
      AND NOT EXISTS (
          SELECT FROM shard_seals AS s WHERE s.shard = l.shard AND s.epoch > coalesce(($5::bigint[])[s.shard + 1], 0)
      )
    RETURNING l.domain, l.key, l.created_at, l.state, l.origin, l.tags
), untagged AS (
    DELETE FROM link_tags AS t USING gone AS g CROSS JOIN LATERAL unnest(g.tags) AS own (tag)
    WHERE t.tag = lower(own.tag COLLATE "C") AND t.created_at = g.created_at AND t.domain = g.domain AND t.key = g.key
), counted AS (
    UPDATE link_counts AS c
    SET created_alias = c.created_alias - n.alias, created_ledger = c.created_ledger - n.ledger,
        created_file = c.created_file - n.file, created_claim = c.created_claim - n.claim,
        created_id = c.created_id - n.id, created_hash = c.created_hash - n.hash,
        created_random = c.created_random - n.random, live = c.live - n.live, deleted = c.deleted - n.deleted,
        deleted_from_ledger = c.deleted_from_ledger - n.deleted_from_ledger, seeded = c.seeded - n.seeded
    FROM (
        SELECT count(*) AS rows,
               count(*) FILTER (WHERE origin = 0 AND state <> 3) AS alias,
               count(*) FILTER (WHERE origin = 1 AND state <> 3) AS ledger,
               count(*) FILTER (WHERE origin = 2 AND state <> 3) AS file,
               count(*) FILTER (WHERE origin = 3 AND state <> 3) AS claim,
               count(*) FILTER (WHERE origin = 4 AND state <> 3) AS id,
               count(*) FILTER (WHERE origin = 5 AND state <> 3) AS hash,
               count(*) FILTER (WHERE origin = 6 AND state <> 3) AS random,
               count(*) FILTER (WHERE state < 2) AS live, count(*) FILTER (WHERE state = 2 OR state > 3) AS deleted,
               count(*) FILTER (WHERE (state = 2 OR state > 3) AND origin = 1) AS deleted_from_ledger,
               count(*) FILTER (WHERE state = 3) AS seeded
        FROM gone
    ) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT 1
