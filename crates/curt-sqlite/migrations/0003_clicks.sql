-- What is counted about visits, and the visits themselves.

-- Up to where each partition of the stream is counted, moved in the same transaction as the counts (C-1).
CREATE TABLE click_positions (
    partition INTEGER PRIMARY KEY,
    position  INTEGER NOT NULL
) STRICT;

-- What is reported on. Rows stay: visits and days refer to them.
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

-- One visit. The id is its milliseconds × 2^15 + a running number, so that rows lie in the order of time and every
-- index over another column ends in it.
CREATE TABLE click_visits (
    id       INTEGER PRIMARY KEY,
    subject  INTEGER NOT NULL, -- the link, or the orphans
    owner    INTEGER,
    asked    TEXT,             -- the key that no link has; NULL: there is a link, or the base URL was asked for
    tags     TEXT,             -- one per line
    kind     INTEGER NOT NULL, -- 0 human, 1 bot, 2 prefetch, 3 head
    country  TEXT    NOT NULL,
    browser  TEXT    NOT NULL,
    system   TEXT    NOT NULL,
    device   TEXT    NOT NULL,
    referrer TEXT    NOT NULL,
    language TEXT    NOT NULL,
    address  TEXT              -- NULL unless the configuration keeps it
) STRICT;

CREATE INDEX click_visits_by_subject ON click_visits (subject);
CREATE INDEX click_visits_by_owner ON click_visits (owner) WHERE owner IS NOT NULL;

-- What a day's visitors are hashed with; removed when the day is over.
CREATE TABLE click_salts (
    day  INTEGER PRIMARY KEY,
    salt BLOB    NOT NULL
) STRICT;

-- Visits that a link with max_clicks has granted. Only such links have a row here.
CREATE TABLE link_visits (
    link  INTEGER PRIMARY KEY,
    spent INTEGER NOT NULL
) STRICT;
