-- The clicks database: what is counted about clicks, and the clicks themselves. A file of its own, with a writer of its
-- own, so that no link ever waits for counting (C-2).

-- Up to where each partition of a stream is counted, moved in the same transaction as the counts (C-1).
CREATE TABLE click_offsets (
    stream      INTEGER NOT NULL,
    partition   INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    PRIMARY KEY (stream, partition)
) STRICT, WITHOUT ROWID;

-- What is reported on. Rows stay: clicks and days refer to them.
CREATE TABLE click_subjects (
    id     INTEGER PRIMARY KEY,
    kind   INTEGER NOT NULL,                -- 0 everything, 1 orphans, 2 an owner, 3 a tag of an owner, 4 a link
    number INTEGER NOT NULL,                -- the owner, or the link's domain
    name   TEXT    NOT NULL COLLATE BINARY, -- the tag, or the link's key
    UNIQUE (kind, number, name)
) STRICT;

-- One subject on one day. The id is subject × 2^22 + day, so that the days of a subject are neighbours. All counts of
-- the day are one value (see click_days): a report on a year reads 365 rows, whatever was counted, and a
-- flush writes one row per subject instead of one per hour, dimension and value.
CREATE TABLE click_days (
    id       INTEGER PRIMARY KEY,
    counts   BLOB    NOT NULL,
    visitors BLOB    NOT NULL
) STRICT;

CREATE INDEX click_days_by_day ON click_days (id & 4194303);

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

-- Dead letters: rows of click_days that could not be decoded, as they were found; a new row took their place.
CREATE TABLE click_days_damaged (
    id       INTEGER NOT NULL, -- of click_days
    found_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)), -- milliseconds since 1970
    counts   BLOB    NOT NULL,
    visitors BLOB    NOT NULL
) STRICT;

-- Dead letters: counts whose row of click_days or click_subjects lies on a page that the engine cannot read.
CREATE TABLE click_days_aside (
    kind     INTEGER NOT NULL, -- as in click_subjects
    number   INTEGER NOT NULL,
    name     TEXT    NOT NULL COLLATE BINARY,
    day      INTEGER NOT NULL,
    found_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)), -- milliseconds since 1970
    counts   BLOB    NOT NULL,
    visitors BLOB    NOT NULL,
    PRIMARY KEY (kind, number, name, day)
) STRICT, WITHOUT ROWID;

-- How many single clicks were lost because a page that they go to cannot be read.
CREATE TABLE clicks_lost (
    found_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)), -- milliseconds since 1970
    clicks   INTEGER NOT NULL
) STRICT;
