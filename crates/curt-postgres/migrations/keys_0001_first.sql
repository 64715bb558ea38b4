-- Minted keys: one shard of the keys database.
--
-- A key is unused when its status is 0 and its id is not below `key_head.head`. Every form keeps to that, so that a
-- deployment can change its form while no process runs.
CREATE SEQUENCE key_ids AS bigint CACHE 1;

CREATE TABLE keys (
    key    text COLLATE "C" PRIMARY KEY,
    id     bigint   NOT NULL DEFAULT nextval('key_ids'), -- the order in which keys are taken
    status smallint NOT NULL DEFAULT 0                   -- 0 unused, 1 used
) WITH (
    -- Taken rows leave dead ones at the front of the index, which every take has to pass: clean up early, and fast.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 50000
);

CREATE UNIQUE INDEX keys_unused ON keys (id) WHERE status = 0;

-- Used keys, in the form that moves them.
CREATE TABLE keys_used (
    key text COLLATE "C" PRIMARY KEY
);

-- In the form that takes ranges: every id below has been taken.
CREATE TABLE key_head (
    head bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

INSERT INTO key_head (head) VALUES (0);

-- The highest fencing token of an owner of this shard that inserted: those before it are refused.
CREATE TABLE key_owner (
    fencing_token bigint NOT NULL
) WITH (fillfactor = 10);

INSERT INTO key_owner (fencing_token) VALUES (0);

-- Batches that were taken and are not closed. The keys are written in the transaction that takes them, so that a
-- process that dies before it hands them on leaves a trail.
CREATE TABLE key_batches (
    name     text COLLATE "C" PRIMARY KEY,
    seq      bigint GENERATED ALWAYS AS IDENTITY,
    taken_at bigint NOT NULL,
    wanted   bigint NOT NULL,
    keys     text[] NOT NULL,
    -- K-3. A plan can run a LIMIT more than once; this undoes the whole take if one ever does.
    CONSTRAINT k3_batch_within_limit CHECK (cardinality(keys) <= wanted)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

ALTER TABLE key_batches ALTER COLUMN keys SET STORAGE EXTERNAL; -- random keys do not compress

CREATE INDEX key_batches_by_age ON key_batches (taken_at, seq);

-- Totals for K-2, moved in the transaction of what they count. One row would make everybody wait for everybody, so
-- each session adds to one of sixteen, and the total is their sum.
CREATE TABLE key_counts (
    slot     integer PRIMARY KEY,
    minted   bigint NOT NULL DEFAULT 0,
    free     bigint NOT NULL DEFAULT 0,
    open     bigint NOT NULL DEFAULT 0,
    recycled bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

INSERT INTO key_counts (slot) SELECT generate_series(0, 15);
