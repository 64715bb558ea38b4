-- What is counted about clicks, and the clicks themselves, of every process that counts into this database.

-- Up to where each partition of each stream is counted, moved in the same transaction as the counts (C-1).
CREATE TABLE click_offsets (
    stream      bigint NOT NULL,
    partition   bigint NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (stream, partition)
);

-- What was counted: sorted runs of the days of subjects (see rollup_runs). Rows are added, merged and removed;
-- a chunk changes only when a link is erased from it. A window writes its own run, whatever is stored, and no process waits for another.
CREATE TABLE rollup_runs (
    id       bigint  PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    day      integer NOT NULL, -- days since 1970
    subjects bigint  NOT NULL,
    bytes    bigint  NOT NULL, -- of its chunks
    edits    bigint  NOT NULL DEFAULT 0 -- how often a subject was taken out
);

CREATE INDEX rollup_runs_by_day ON rollup_runs (day, id);
-- Small ones are merged.
CREATE INDEX rollup_runs_small ON rollup_runs (id) WHERE bytes < 8388608;

-- Neighbours in a run, compressed together.
CREATE TABLE rollup_chunks (
    run       bigint NOT NULL,
    first_key bytea  NOT NULL, -- of its first subject
    content   bytea  NOT NULL,
    PRIMARY KEY (run, first_key)
);

ALTER TABLE rollup_chunks ALTER COLUMN content SET STORAGE EXTERNAL;

-- Single clicks, thousands in a block of columns (see click_blocks). What lies beside a block tells whether it has to be
-- read: the times of its oldest and newest click, and a filter of the subjects that have clicks in it.
CREATE TABLE click_blocks (
    id       bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    first_at bigint NOT NULL, -- milliseconds since 1970
    last_at  bigint NOT NULL,
    clicks   bigint NOT NULL,
    bytes    bigint NOT NULL, -- of the two below
    subjects bytea  NOT NULL,
    content  bytea  NOT NULL
);

-- They are packed already.
ALTER TABLE click_blocks ALTER COLUMN subjects SET STORAGE EXTERNAL, ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE INDEX click_blocks_by_end ON click_blocks (last_at, id);
CREATE INDEX click_blocks_by_start ON click_blocks (first_at, id);
-- Small ones are put together.
CREATE INDEX click_blocks_small ON click_blocks (id) WHERE clicks < 4096;

-- How often clicks were moved from one block to another.
CREATE TABLE click_block_moves (
    id    smallint PRIMARY KEY CHECK (id = 1),
    moves bigint NOT NULL
);

INSERT INTO click_block_moves (id, moves) VALUES (1, 0);

-- Runs of counts and blocks of clicks that could not be read when they were to be merged. They stay where they are.
CREATE TABLE click_damage (
    kind     smallint    NOT NULL, -- 0 a run, 1 a block
    id       bigint      NOT NULL, -- of rollup_runs or click_blocks
    found_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, id)
);

-- What a day's visitors are hashed with; removed when the day is over.
CREATE TABLE click_salts (
    day  integer PRIMARY KEY,
    salt bytea NOT NULL
);
