-- Gives seeded rows to the links $1 to $22, of which $23 are the ranks within their domains; $24 and $25 say how many are
-- wanted per domain, $26 the epochs of shards. Claimers begin at different buckets, so that they do not all pass over each other's locked rows.
WITH start AS MATERIALIZED (
    SELECT floor(random() * 256)::smallint AS bucket
), wanted AS (
    SELECT * FROM unnest($24::bigint[], $25::bigint[]) AS wanted (domain, count)
), front AS MATERIALIZED (
    SELECT seed.* FROM wanted CROSS JOIN LATERAL (
        SELECT domain, key, generation FROM links
        WHERE state = 3 AND links.domain = wanted.domain AND seed_bucket >= (SELECT bucket FROM start)
          AND NOT EXISTS (
              SELECT FROM shard_seals AS s WHERE s.shard = links.shard AND s.epoch > coalesce(($26::bigint[])[s.shard + 1], 0)
          )
        ORDER BY seed_bucket LIMIT wanted.count FOR UPDATE SKIP LOCKED
    ) AS seed
), back AS MATERIALIZED (
    SELECT seed.* FROM wanted CROSS JOIN LATERAL (
        SELECT domain, key, generation FROM links
        WHERE state = 3 AND links.domain = wanted.domain AND seed_bucket < (SELECT bucket FROM start)
          AND NOT EXISTS (
              SELECT FROM shard_seals AS s WHERE s.shard = links.shard AND s.epoch > coalesce(($26::bigint[])[s.shard + 1], 0)
          )
        ORDER BY seed_bucket LIMIT wanted.count - (SELECT count(*) FROM front WHERE front.domain = wanted.domain)
        FOR UPDATE SKIP LOCKED
    ) AS seed
), seeds AS (
    SELECT domain, key AS seed, generation AS former, row_number() OVER (PARTITION BY domain) AS rank
    FROM (SELECT * FROM front UNION ALL SELECT * FROM back) AS found
), given AS (
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::smallint[], $15::text[],
        $16::smallint[], $17::boolean[], $18::boolean[], $19::text[], $20::text[], $21::bigint[], $22::bytea[],
        $23::bigint[]
    ) WITH ORDINALITY AS given (
        domain, key, target, owner, state, origin, generation, version, created_at, updated_at, expires_at, valid_since,
        max_clicks, visibility, password_hash, status, was_permanent, forward_query, title, tags, made_with, request_token,
        rank, place
    )
), matched AS (
    SELECT given.*, seed, former FROM given LEFT JOIN seeds USING (domain, rank)
), served AS (
    SELECT * FROM matched
    WHERE NOT EXISTS (SELECT FROM matched AS none WHERE none.seed IS NULL AND none.place <= matched.place)
), claimed AS (
    UPDATE links AS l
    SET target = s.target, owner = s.owner, state = s.state, origin = s.origin,
        generation = least(s.former + 1, 4294967295), version = 1, created_at = s.created_at,
        updated_at = s.updated_at, expires_at = s.expires_at, valid_since = s.valid_since, max_clicks = s.max_clicks,
        visibility = s.visibility, password_hash = s.password_hash, status = s.status,
        was_permanent = s.was_permanent, forward_query = s.forward_query, title = s.title, tags = s.tags::text[],
        made_with = s.made_with, request_token = s.request_token, seed_bucket = NULL
    FROM served AS s WHERE l.domain = s.domain AND l.key = s.seed AND l.state = 3
    RETURNING l.*, s.place
), tagged AS (
    INSERT INTO link_tags (tag, created_at, domain, key)
    SELECT DISTINCT lower(tag COLLATE "C"), created_at, domain, key FROM claimed CROSS JOIN LATERAL unnest(tags) AS tag
    ON CONFLICT DO NOTHING
), counted AS (
    UPDATE link_counts AS c
    SET created_alias = c.created_alias + n.alias, created_ledger = c.created_ledger + n.ledger,
        created_file = c.created_file + n.file, created_claim = c.created_claim + n.claim,
        created_id = c.created_id + n.id, created_hash = c.created_hash + n.hash,
        created_random = c.created_random + n.random, live = c.live + n.live, seeded = c.seeded - n.rows
    FROM (
        SELECT count(*) AS rows, count(*) FILTER (WHERE origin = 0) AS alias,
               count(*) FILTER (WHERE origin = 1) AS ledger, count(*) FILTER (WHERE origin = 2) AS file,
               count(*) FILTER (WHERE origin = 3) AS claim, count(*) FILTER (WHERE origin = 4) AS id,
               count(*) FILTER (WHERE origin = 5) AS hash, count(*) FILTER (WHERE origin = 6) AS random,
               count(*) FILTER (WHERE state < 2) AS live
        FROM claimed
    ) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT place, key, generation FROM claimed
