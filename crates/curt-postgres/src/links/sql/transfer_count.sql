-- Counts the rows of "changed", whose sign says whether they came or went. Answers with one row for each.
), counted AS (
    UPDATE link_counts AS c
    SET created_alias = c.created_alias + n.alias, created_ledger = c.created_ledger + n.ledger,
        created_file = c.created_file + n.file, created_claim = c.created_claim + n.claim,
        created_id = c.created_id + n.id, created_hash = c.created_hash + n.hash,
        created_random = c.created_random + n.random, live = c.live + n.live, deleted = c.deleted + n.deleted,
        deleted_from_ledger = c.deleted_from_ledger + n.deleted_from_ledger, seeded = c.seeded + n.seeded
    FROM (
        SELECT count(*) AS rows,
               coalesce(sum(sign) FILTER (WHERE origin = 0 AND state <> 3), 0)::bigint AS alias,
               coalesce(sum(sign) FILTER (WHERE origin = 1 AND state <> 3), 0)::bigint AS ledger,
               coalesce(sum(sign) FILTER (WHERE origin = 2 AND state <> 3), 0)::bigint AS file,
               coalesce(sum(sign) FILTER (WHERE origin = 3 AND state <> 3), 0)::bigint AS claim,
               coalesce(sum(sign) FILTER (WHERE origin = 4 AND state <> 3), 0)::bigint AS id,
               coalesce(sum(sign) FILTER (WHERE origin = 5 AND state <> 3), 0)::bigint AS hash,
               coalesce(sum(sign) FILTER (WHERE origin = 6 AND state <> 3), 0)::bigint AS random,
               coalesce(sum(sign) FILTER (WHERE state < 2), 0)::bigint AS live,
               coalesce(sum(sign) FILTER (WHERE state = 2 OR state > 3), 0)::bigint AS deleted,
               coalesce(sum(sign) FILTER (WHERE (state = 2 OR state > 3) AND origin = 1), 0)::bigint AS deleted_from_ledger,
               coalesce(sum(sign) FILTER (WHERE state = 3), 0)::bigint AS seeded
        FROM changed
    ) AS n
    WHERE c.slot = pg_backend_pid() % 256 AND n.rows > 0
)
SELECT domain FROM changed
