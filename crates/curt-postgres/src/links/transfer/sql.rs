//! The statements of copies.

/// The `$4` links behind `$1`, `$2`, `$3` that lists show, in the order of their creation.
pub(super) const EXPORT_LIVE: &str = "SELECT domain, key, created_at FROM links \
     WHERE state < 2 AND (created_at, domain, key) > ($1, $2, $3) ORDER BY created_at, domain, key LIMIT $4";

/// The same of those that can be restored.
pub(super) const EXPORT_DELETED: &str = "SELECT domain, key, created_at FROM links \
     WHERE state > 3 AND (created_at, domain, key) > ($1, $2, $3) ORDER BY created_at, domain, key LIMIT $4";

/// Tombstones and seeds among the `$3` rows behind `$1`, `$2`, and the last of these rows, if there are as many.
pub(super) const EXPORT_OTHERS: &str = "(SELECT domain, key, false FROM (SELECT domain, key, state FROM links \
     WHERE (domain, key) > ($1, $2) ORDER BY domain, key LIMIT $3) AS part WHERE state IN (2, 3)) UNION ALL \
     (SELECT domain, key, true FROM links WHERE (domain, key) > ($1, $2) ORDER BY domain, key OFFSET $3::bigint - 1 LIMIT 1)";

pub(super) const EXPORT_FORMER: &str = "SELECT domain, key, shard FROM key_generations \
     WHERE (shard, domain, key) > ($1, $2, $3) ORDER BY shard, domain, key LIMIT $4";

pub(super) const RELEASED: &str = "SELECT shard, origin, count FROM released_keys";

pub(super) const TAKE: &str = concat!(
    include_str!("../sql/transfer_take.sql"),
    include_str!("../sql/transfer_count.sql")
);

/// Answers with one row for each link that was added.
pub(super) const PUT: &str = concat!(
    include_str!("../sql/transfer_put.sql"),
    include_str!("../sql/transfer_count.sql")
);

/// Of the links `$1`, `$2` at the revisions `$3`, `$4`, notes that so many clicks (`$5`) were taken.
pub(super) const PUT_SPENT: &str = "INSERT INTO link_clicks (domain, key, spent) SELECT l.domain, l.key, own.spent \
     FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) \
     AS own (domain, key, generation, version, spent) JOIN links AS l ON l.domain = own.domain AND l.key = own.key \
     AND l.generation = own.generation AND l.version = own.version WHERE own.spent > 0 \
     ON CONFLICT (domain, key) DO UPDATE SET spent = excluded.spent";

/// Of the keys `$1`, `$2` in the shards `$3`, notes that a link of the generation `$4` was released.
pub(super) const PUT_FORMER: &str = "INSERT INTO key_generations AS g (shard, domain, key, generation) \
     SELECT shard, domain, key, generation FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[]) \
     AS own (domain, key, shard, generation) WHERE NOT EXISTS (SELECT FROM shard_seals AS s \
     WHERE s.shard = own.shard AND s.epoch > coalesce(($5::bigint[])[s.shard + 1], 0)) \
     ON CONFLICT (shard, domain, key) DO UPDATE SET generation = greatest(g.generation, excluded.generation)";

/// Forgets the requests `$1`, `$2` of the shards `$3`.
pub(super) const TAKE_REQUESTS: &str = "DELETE FROM idempotency AS i \
     USING unnest($1::bigint[], $2::text[], $3::smallint[]) AS own (owner, name, shard) \
     WHERE i.owner = own.owner AND i.name = own.name AND NOT EXISTS (SELECT FROM shard_seals AS s \
     WHERE s.shard = own.shard AND s.epoch > coalesce(($4::bigint[])[s.shard + 1], 0))";

pub(super) const PUT_REQUESTS: &str = "INSERT INTO idempotency \
     (owner, name, fingerprint, token, version, created_at, plan, outcome) \
     SELECT owner, name, fingerprint, token, version, created_at, plan, outcome FROM unnest($1::bigint[], $2::text[], \
     $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::smallint[]) \
     AS own (owner, name, fingerprint, token, version, created_at, plan, outcome, shard) \
     WHERE NOT EXISTS (SELECT FROM shard_seals AS s \
     WHERE s.shard = own.shard AND s.epoch > coalesce(($10::bigint[])[s.shard + 1], 0)) ON CONFLICT DO NOTHING";

pub(super) const PUT_RELEASED: &str = include_str!("../sql/transfer_released.sql");

/// One of the shards `$1` that takes no more writes at the epochs `$2`.
pub(super) const SEALED: &str = "SELECT s.shard FROM shard_seals AS s \
     WHERE s.shard = ANY ($1) AND s.epoch > coalesce(($2::bigint[])[s.shard + 1], 0) LIMIT 1";

/// Has changes of all shards remembered for the copy `$1`, unless another copy or a mover has.
pub(super) const FOLLOW: &str = "INSERT INTO shard_tracking (shard, fence) SELECT shard, $1 \
     FROM generate_series(0, 1023) AS shard WHERE NOT EXISTS (SELECT FROM shard_tracking WHERE fence <> $1) \
     ON CONFLICT (shard) DO NOTHING";

/// The lowest and the highest fence for which changes are remembered, and of how many shards.
pub(super) const FOLLOWER: &str = "SELECT min(fence), max(fence), count(*) FROM shard_tracking";

pub(super) const UNFOLLOW: &str = "DELETE FROM shard_tracking WHERE fence = $1";
