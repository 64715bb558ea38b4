-- The row is locked first, so that the tags that it had are known.
WITH before AS MATERIALIZED (
    SELECT domain, key, tags, state FROM links
    WHERE domain = $1 AND key = $2 AND state NOT IN (2, 3) AND generation = $3 AND version = $4
      AND NOT EXISTS (SELECT FROM shard_seals AS s WHERE s.shard = links.shard AND s.epoch > $19)
    FOR UPDATE
), after AS (
    UPDATE links AS l
    SET version = $5, target = $6, state = $7, updated_at = $8, expires_at = $9, valid_since = $10, max_clicks = $11,
        visibility = $12, password_hash = $13, status = $14, was_permanent = l.was_permanent OR $15,
        forward_query = $16, title = $17, tags = $18
    FROM before AS b WHERE l.domain = b.domain AND l.key = b.key
    RETURNING l.domain, l.key, l.created_at, l.tags, l.origin,
              -- 1: deleted, -1: restored.
              (l.state > 3)::integer - (b.state > 3)::integer AS deleted
), untagged AS (
    DELETE FROM link_tags AS t USING before AS b, after AS a
    WHERE t.created_at = a.created_at AND t.domain = a.domain AND t.key = a.key
      AND t.tag IN (SELECT lower(tag COLLATE "C") FROM unnest(b.tags) AS tag)
      AND t.tag NOT IN (SELECT lower(tag COLLATE "C") FROM unnest(a.tags) AS tag)
), tagged AS (
    INSERT INTO link_tags (tag, created_at, domain, key)
    SELECT DISTINCT lower(tag COLLATE "C"), created_at, domain, key FROM after CROSS JOIN LATERAL unnest(tags) AS tag
    ON CONFLICT DO NOTHING
), counted AS (
    UPDATE link_counts AS c
    SET live = c.live - a.deleted, deleted = c.deleted + a.deleted,
        deleted_from_ledger = c.deleted_from_ledger + CASE WHEN a.origin = 1 THEN a.deleted ELSE 0 END
    FROM after AS a WHERE c.slot = pg_backend_pid() % 256 AND a.deleted <> 0
)
SELECT 1 FROM after
