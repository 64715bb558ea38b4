WITH refused AS MATERIALIZED (
    SELECT place FROM unnest($23::smallint[], $24::bigint[]) WITH ORDINALITY AS routed (shard, epoch, place)
    JOIN shard_seals AS s ON s.shard = routed.shard AND s.epoch > routed.epoch
), given AS (
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::smallint[], $15::text[],
        $16::smallint[], $17::boolean[], $18::boolean[], $19::text[], $20::text[], $21::bigint[], $22::bytea[],
        $23::smallint[]
    ) AS given (
        domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, valid_since,
        max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, tags, made_with, request_token,
        shard
    )
), new AS (
    INSERT INTO links (
        domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, valid_since,
        max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, tags, made_with, request_token,
        shard
    )
    SELECT domain, key, target, owner, state, origin,
           -- After the generation of the last link that had the key and was released.
           greatest(generation, coalesce((
               SELECT least(former.generation + 1, 4294967295) FROM key_generations AS former
               WHERE former.shard = given.shard AND former.domain = given.domain AND former.key = given.key
           ), 0)),
           version, created_at, updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status,
           was_permanent, forward_query, title, tags::text[], made_with, request_token, shard
    FROM given WHERE NOT EXISTS (SELECT FROM refused) ORDER BY domain, key COLLATE "C"
    ON CONFLICT (domain, key) DO NOTHING
    RETURNING domain, key, generation, version, state, origin, created_at, tags
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
        deleted_from_ledger = c.deleted_from_ledger + n.deleted_from_ledger
    FROM (
        SELECT count(*) AS rows, count(*) FILTER (WHERE origin = 0) AS alias,
               count(*) FILTER (WHERE origin = 1) AS ledger, count(*) FILTER (WHERE origin = 2) AS file,
               count(*) FILTER (WHERE origin = 3) AS claim, count(*) FILTER (WHERE origin = 4) AS id,
               count(*) FILTER (WHERE origin = 5) AS hash, count(*) FILTER (WHERE origin = 6) AS random,
               count(*) FILTER (WHERE state < 2) AS live, count(*) FILTER (WHERE state = 2 OR state > 3) AS deleted,
               count(*) FILTER (WHERE (state = 2 OR state > 3) AND origin = 1) AS deleted_from_ledger
        FROM new
    ) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT domain, key, generation, version, NULL AS refused FROM new
UNION ALL SELECT NULL, NULL, NULL, NULL, place FROM refused
