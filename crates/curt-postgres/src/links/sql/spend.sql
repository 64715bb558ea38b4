-- The link is locked against edits: a click is never taken by a limit that is gone.
WITH seen AS MATERIALIZED (
    SELECT max_clicks FROM links
    WHERE domain = $1 AND key = $2 AND generation = $3 AND version = $4 AND state = 0
      AND NOT EXISTS (SELECT FROM shard_seals AS s WHERE s.shard = links.shard AND s.epoch > $5)
    FOR SHARE
), taken AS (
    INSERT INTO link_clicks AS v (domain, key, spent) SELECT $1, $2, 1 FROM seen WHERE max_clicks > 0
    ON CONFLICT (domain, key) DO UPDATE SET spent = v.spent + 1 WHERE v.spent < (SELECT max_clicks FROM seen)
    RETURNING 1
)
SELECT max_clicks, (SELECT count(*) FROM taken) FROM seen
