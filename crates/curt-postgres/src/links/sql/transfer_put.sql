-- Adds the links $1 to $22, one array per column, as another database has them, where the ids are free. $23 says which once
-- had a status that browsers keep; $24 are their shards, $25 the epochs at which shards were routed. Answers with one row
-- for each that was added.
WITH given AS (
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::smallint[], $15::text[],
        $16::smallint[], $17::boolean[], $18::boolean[], $19::text[], $20::text[], $21::bigint[], $22::bytea[],
        $23::boolean[], $24::smallint[]
    ) AS given (
        domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, valid_since,
        max_clicks, visibility, password_hash, status, is_permanent, forward_query, title, tags, made_with, request_token,
        was_permanent, shard
    )
    WHERE NOT EXISTS (
        SELECT FROM shard_seals AS s WHERE s.shard = given.shard AND s.epoch > coalesce(($25::bigint[])[s.shard + 1], 0)
    )
), new AS (
    INSERT INTO links (
        domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, valid_since,
        max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, tags, made_with, request_token,
        seed_bucket, shard
    )
    SELECT domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, valid_since,
           max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, tags::text[], made_with,
           request_token, CASE WHEN state = 3 THEN floor(random() * 256)::smallint END, shard
    FROM given ORDER BY domain, key COLLATE "C"
    ON CONFLICT (domain, key) DO NOTHING RETURNING domain, key, created_at, state, origin, tags
), tagged AS (
    INSERT INTO link_tags (tag, created_at, domain, key)
    SELECT DISTINCT lower(tag COLLATE "C"), created_at, domain, key FROM new CROSS JOIN LATERAL unnest(tags) AS tag
    ON CONFLICT DO NOTHING
), counted AS (
    UPDATE link_counts AS c
    SET created_alias = c.created_alias + n.alias, created_ledger = c.created_ledger + n.ledger,
        created_file = c.created_file + n.file, created_claim = c.created_claim + n.claim,
        created_id = c.created_id + n.id, created_hash = c.created_hash + n.hash,
        created_random = c.created_random + n.random, live = c.live + n.live, deleted = c.deleted + n.deleted,
        deleted_from_ledger = c.deleted_from_ledger + n.deleted_from_ledger, seeded = c.seeded + n.seeded
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
        FROM new
    ) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT domain FROM new
