-- The clicks database: what is counted about clicks, and the clicks themselves. A file of its own, with a writer of its
-- own, so that no link ever waits for counting (C-2).

-- Up to where each partition of a stream is counted, moved in the same transaction as the counts (C-1).
CREATE TABLE click_offsets (
    stream      INTEGER NOT NULL,
    partition   INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    PRIMARY KEY (stream, partition)
) STRICT, WITHOUT ROWID;

-- What was counted: sorted runs of the days of subjects (see rollup_runs). Rows are added, merged and removed;
-- a chunk changes only when a link is erased from it. A window writes its own run, whatever is stored.
CREATE TABLE rollup_runs (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    day      INTEGER NOT NULL, -- days since 1970
    subjects INTEGER NOT NULL,
    bytes    INTEGER NOT NULL, -- of its chunks
    edits    INTEGER NOT NULL DEFAULT 0 -- how often a subject was taken out
) STRICT;

CREATE INDEX rollup_runs_by_day ON rollup_runs (day, id);
-- Small ones are merged.
CREATE INDEX rollup_runs_small ON rollup_runs (id) WHERE bytes < 8388608;

-- Neighbours in a run, compressed together.
CREATE TABLE rollup_chunks (
    id        INTEGER PRIMARY KEY,
    run       INTEGER NOT NULL,
    first_key BLOB    NOT NULL, -- of its first subject
    content   BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX rollup_chunks_by_key ON rollup_chunks (run, first_key);

-- Single clicks, thousands in a block of columns (see click_blocks). What lies beside a block tells whether it has to be
-- read: the times of its oldest and newest click, and a filter of the subjects that have clicks in it.
CREATE TABLE click_blocks (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    first_at INTEGER NOT NULL, -- milliseconds since 1970
    last_at  INTEGER NOT NULL,
    clicks   INTEGER NOT NULL,
    bytes    INTEGER NOT NULL, -- of the two below
    subjects BLOB    NOT NULL,
    content  BLOB    NOT NULL
) STRICT;

CREATE INDEX click_blocks_by_end ON click_blocks (last_at, id);
-- With the bytes, so that their sum is read from here.
CREATE INDEX click_blocks_by_start ON click_blocks (first_at, id, bytes);
-- Small ones are put together.
CREATE INDEX click_blocks_small ON click_blocks (id) WHERE clicks < 4096;

-- How often clicks were moved from one block to another.
CREATE TABLE click_block_moves (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    moves INTEGER NOT NULL
) STRICT;

INSERT INTO click_block_moves (id, moves) VALUES (1, 0);

-- What a day's visitors are hashed with; removed when the day is over.
CREATE TABLE click_salts (
    day  INTEGER PRIMARY KEY,
    salt BLOB    NOT NULL
) STRICT;

-- Runs of counts and blocks of clicks that could not be read when they were to be merged. They stay where they are.
CREATE TABLE click_damage (
    kind     INTEGER NOT NULL, -- 0 a run, 1 a block
    id       INTEGER NOT NULL, -- of rollup_runs or click_blocks
    found_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)), -- milliseconds since 1970
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
