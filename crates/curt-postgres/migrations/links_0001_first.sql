-- Links, and the requests that may be repeated: one shard of the links database.
--
-- A link has state 0 (active), 1 (disabled), 4 (deleted) or 5 (deleted while disabled); 2 is a tombstone, 3 a seeded row
-- that is nobody's yet.
CREATE TABLE links (
    -- The widest columns first: no byte is lost to alignment.
    domain        bigint   NOT NULL,
    owner         bigint   NOT NULL,
    generation    bigint   NOT NULL,
    version       bigint   NOT NULL,
    created_at    bigint   NOT NULL,
    updated_at    bigint,            -- NULL: as created_at
    expires_at    bigint,
    valid_since   bigint,
    max_clicks    bigint,
    made_with     bigint,            -- the number of the API key that made it; NULL: none did
    state         smallint NOT NULL,
    origin        smallint NOT NULL,
    visibility    smallint NOT NULL,
    status        smallint,          -- NULL: 302
    shard         smallint NOT NULL, -- a hash of the key, worked out by the writer: what moves between nodes together
    seed_bucket   smallint,          -- of a seeded row: where claimers begin to look
    was_permanent boolean  NOT NULL, -- once it had status 301 or 308: browsers may remember it for ever
    forward_query boolean  NOT NULL,
    key           text COLLATE "C" NOT NULL,
    target        text COLLATE "C" NOT NULL,
    password_hash text,
    title         text,
    tags          text[],            -- NULL: none
    request_token bytea,             -- of the request that made it, if that had an idempotency key
    PRIMARY KEY (domain, key)        -- the judge of uniqueness (K-1)
);

-- Lists are in the order of creation, and of ids within one instant: an order that can be told from the links alone, so
-- that the lists of several shards can be merged.
CREATE INDEX links_by_age ON links (created_at, domain, key) WHERE state < 2;
CREATE INDEX links_by_owner ON links (owner, created_at, domain, key) WHERE state < 2;
CREATE INDEX links_by_expiry ON links (expires_at, domain, key) WHERE state = 0 AND expires_at IS NOT NULL;
CREATE INDEX links_by_deletion ON links (updated_at, domain, key) WHERE state > 3;
CREATE INDEX deleted_links_by_age ON links (created_at, domain, key) WHERE state > 3;
CREATE INDEX deleted_links_by_owner ON links (owner, created_at, domain, key) WHERE state > 3;
CREATE INDEX links_in_quarantine ON links (updated_at) WHERE state = 2 AND origin <> 0 AND NOT was_permanent;
CREATE INDEX links_seeded ON links (domain, seed_bucket) WHERE state = 3;

-- Which links carry a tag; only tagged links have rows here. ASCII letters in lower case.
CREATE TABLE link_tags (
    tag        text COLLATE "C" NOT NULL,
    created_at bigint           NOT NULL,
    domain     bigint           NOT NULL,
    key        text COLLATE "C" NOT NULL,
    PRIMARY KEY (tag, created_at, domain, key)
);

-- How many clicks were taken from links that have only so many.
CREATE TABLE link_clicks (
    domain bigint           NOT NULL,
    key    text COLLATE "C" NOT NULL,
    spent  bigint           NOT NULL,
    PRIMARY KEY (domain, key),
    FOREIGN KEY (domain, key) REFERENCES links ON DELETE CASCADE
);

-- The generation of the last link that had a key which was released since: the next link under the key has the next one,
-- so that nothing that names the former link is about the new one. Rows stay when the key is used again.
CREATE TABLE key_generations (
    domain     bigint           NOT NULL,
    generation bigint           NOT NULL,
    shard      smallint         NOT NULL,
    key        text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, domain, key)
);

-- Shards that take writes from this epoch on only, because they were moved. Writes read it, and a seal locks it against
-- them: so a write either is done before the seal or sees it (L-4).
CREATE TABLE shard_seals (
    shard smallint PRIMARY KEY,
    epoch bigint   NOT NULL
);

-- How many keys of a shard were released, by origin. What else the totals hold of a shard can be counted from its links:
-- so the totals of a shard can move with it, and creates need not keep them apart.
CREATE TABLE released_keys (
    count  bigint   NOT NULL,
    shard  smallint NOT NULL,
    origin smallint NOT NULL,
    PRIMARY KEY (shard, origin)
);

-- Requests with an idempotency key: the keys that each is going to use, a line per link with origin and "domain/key", and
-- when it is finished what came of it, a line per link with "domain/key", or "-" where an alias had been taken.
CREATE TABLE idempotency (
    owner       bigint           NOT NULL,
    created_at  bigint           NOT NULL,
    version     bigint           NOT NULL, -- of the plan
    name        text COLLATE "C" NOT NULL,
    fingerprint bytea            NOT NULL,
    token       bytea            NOT NULL, -- its links carry it
    plan        text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C",
    PRIMARY KEY (owner, name)
);

CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Totals, moved in the transaction of what they count. One row would make everybody wait for everybody's commit, so
-- each session adds to one of many, and the total is their sum.
CREATE TABLE link_counts (
    slot                integer PRIMARY KEY,
    created_alias       bigint NOT NULL DEFAULT 0,
    created_ledger      bigint NOT NULL DEFAULT 0,
    created_file        bigint NOT NULL DEFAULT 0,
    created_claim       bigint NOT NULL DEFAULT 0,
    created_id          bigint NOT NULL DEFAULT 0,
    created_hash        bigint NOT NULL DEFAULT 0,
    created_random      bigint NOT NULL DEFAULT 0,
    live                bigint NOT NULL DEFAULT 0,
    deleted             bigint NOT NULL DEFAULT 0,
    deleted_from_ledger bigint NOT NULL DEFAULT 0,
    seeded              bigint NOT NULL DEFAULT 0,
    pings               bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

INSERT INTO link_counts (slot) SELECT generate_series(0, 255);
