-- Takes away the links $1, $2 that still have the revisions $3, $4, to make room for what comes in their place. $5 are the
-- epochs at which shards were routed. Goes on with transfer_count.sql.
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
), changed AS (
    SELECT -1 AS sign, domain, state, origin FROM gone
