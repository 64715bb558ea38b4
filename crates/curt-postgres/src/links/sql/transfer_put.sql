-- Adds the links $1 to $22, one array per column, as another database has them, where the ids are free. $23 says which once
-- had a status that browsers keep; $24 are their shards, $25 the epochs at which shards were routed. Goes on with
-- transfer_count.sql.
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
), changed AS (
    SELECT 1 AS sign, domain, state, origin FROM new
