-- Turns those of the links $2, $3 that are still at the revisions $4, $5 into tombstones at $1 (L-3); where $6 is a time,
-- only those that expired or were deleted by then. The links were routed at the epochs $7.
WITH before AS MATERIALIZED (
    SELECT l.* FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $7::bigint[])
        AS due (domain, key, generation, version, epoch)
    CROSS JOIN LATERAL (
        SELECT domain, key, created_at, tags, state FROM links
        WHERE links.domain = due.domain AND links.key = due.key AND links.generation = due.generation
          AND links.version = due.version AND state NOT IN (2, 3)
          AND ($6::bigint IS NULL OR state = 0 AND expires_at <= $6 OR state > 3 AND updated_at <= $6)
          AND NOT EXISTS (SELECT FROM shard_seals AS s WHERE s.shard = links.shard AND s.epoch > due.epoch)
        FOR UPDATE
    ) AS l
), after AS (
    UPDATE links AS l
    SET state = 2, version = least(l.version + 1, 4294967295), updated_at = $1, title = NULL, tags = NULL,
        password_hash = NULL
    FROM before AS b WHERE l.domain = b.domain AND l.key = b.key
    RETURNING l.domain, l.key, l.generation, l.version, l.origin, b.state AS former
), untagged AS (
    DELETE FROM link_tags AS t USING before AS b
    WHERE t.created_at = b.created_at AND t.domain = b.domain AND t.key = b.key
      AND t.tag IN (SELECT lower(tag COLLATE "C") FROM unnest(b.tags) AS tag)
), counted AS (
    UPDATE link_counts AS c
    SET live = c.live - n.rows, deleted = c.deleted + n.rows,
        deleted_from_ledger = c.deleted_from_ledger + n.from_ledger
    -- A deleted link was counted when it was deleted.
    FROM (
        SELECT count(*) AS rows, count(*) FILTER (WHERE origin = 1) AS from_ledger FROM after WHERE former < 2
    ) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT domain, key, generation, version FROM after
