-- The clicks database: what is counted about clicks, and the clicks themselves. A file of its own, with a writer of its
-- own, so that no link ever waits for counting (C-2).

-- Up to where each partition of a stream is counted, moved in the same transaction as the counts (C-1).
CREATE TABLE click_offsets (
    stream    INTEGER NOT NULL,
    partition INTEGER NOT NULL,
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

-- One click. The id is its milliseconds × 2^15 + a running number, so that rows lie in the order of time and every
-- index over another column ends in it.
CREATE TABLE clicks (
    id       INTEGER PRIMARY KEY,
    subject  INTEGER NOT NULL, -- the link, or the orphans
    owner    INTEGER,
    asked    TEXT,             -- the key that no link has; NULL: there is a link, or the base URL was asked for
    tags     TEXT,             -- one per line
    class    INTEGER NOT NULL, -- 0 human, 1 bot, 2 prefetch, 3 head
    country  TEXT    NOT NULL,
    browser  TEXT    NOT NULL,
    system   TEXT    NOT NULL,
    device   TEXT    NOT NULL,
    referrer TEXT    NOT NULL,
    language TEXT    NOT NULL,
    address  TEXT              -- NULL unless the configuration keeps it
) STRICT;

CREATE INDEX clicks_by_subject ON clicks (subject);
CREATE INDEX clicks_by_owner ON clicks (owner) WHERE owner IS NOT NULL;

-- What a day's visitors are hashed with; removed when the day is over.
CREATE TABLE click_salts (
    day  INTEGER PRIMARY KEY,
    salt BLOB    NOT NULL
) STRICT;

-- About how many bytes the single clicks take, with their indexes; changed with them.
CREATE TABLE clicks_size (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    bytes INTEGER NOT NULL
) STRICT;

INSERT INTO clicks_size (id, bytes) VALUES (1, 0);

-- Dead letters: rows of click_days that could not be decoded, as they were found; a new row took their place.
CREATE TABLE click_days_damaged (
    id       INTEGER NOT NULL, -- of click_days
    found_at INTEGER NOT NULL, -- milliseconds since 1970
    counts   BLOB    NOT NULL,
    visitors BLOB    NOT NULL
) STRICT;

-- Dead letters: counts whose row of click_days or click_subjects lies on a page that the engine cannot read.
CREATE TABLE click_days_aside (
    kind     INTEGER NOT NULL, -- as in click_subjects
    number   INTEGER NOT NULL,
    name     TEXT    NOT NULL COLLATE BINARY,
    day      INTEGER NOT NULL,
    found_at INTEGER NOT NULL, -- milliseconds since 1970
    counts   BLOB    NOT NULL,
    visitors BLOB    NOT NULL,
    PRIMARY KEY (kind, number, name, day)
) STRICT, WITHOUT ROWID;

-- How many single clicks were lost because a page that they go to cannot be read.
CREATE TABLE clicks_lost (
    found_at INTEGER NOT NULL, -- milliseconds since 1970
    clicks   INTEGER NOT NULL
) STRICT;
