-- What is counted about clicks, and the clicks themselves, of every process that counts into this database.

-- Up to where each partition of each stream is counted, moved in the same transaction as the counts (C-1).
CREATE TABLE click_offsets (
    stream    bigint NOT NULL,
    next_offset bigint NOT NULL,
    partition bigint NOT NULL,
    PRIMARY KEY (stream, partition)
);

-- One subject on one day. All counts of the day are one value (see click_days): a report on a year reads 365 rows,
-- whatever was counted, and a flush writes one row per subject instead of one per hour, dimension and value.
CREATE TABLE click_days (
    number   bigint           NOT NULL, -- the owner, or the link's domain
    day      integer          NOT NULL,
    kind     smallint         NOT NULL, -- 0 everything, 1 orphans, 2 an owner, 3 a tag of an owner, 4 a link
    name     text COLLATE "C" NOT NULL, -- the tag, or the link's key
    counts   bytea            NOT NULL,
    visitors bytea            NOT NULL,
    PRIMARY KEY (kind, number, name, day)
) WITH (fillfactor = 70); -- the rows of today are written again and again

CREATE INDEX click_days_by_day ON click_days (day);

-- One click. Those of one millisecond are in the order in which they came.
CREATE TABLE clicks (
    at       bigint   NOT NULL,
    id       bigint   GENERATED ALWAYS AS IDENTITY,
    domain   bigint,                    -- NULL: no link was met
    owner    bigint,
    class    smallint NOT NULL,         -- 0 human, 1 bot, 2 prefetch, 3 head
    key      text COLLATE "C",          -- NULL: the base URL was asked for
    country  text     NOT NULL,
    browser  text     NOT NULL,
    system   text     NOT NULL,
    device   text     NOT NULL,
    referrer text     NOT NULL,
    language text     NOT NULL,
    tags     text[],                    -- NULL: none
    address  inet,                      -- NULL unless the configuration keeps it
    PRIMARY KEY (at, id)
);

CREATE INDEX clicks_by_link ON clicks (domain, key, at, id) WHERE domain IS NOT NULL;
CREATE INDEX clicks_of_orphans ON clicks (at, id) WHERE domain IS NULL;
CREATE INDEX clicks_by_owner ON clicks (owner, at, id) WHERE owner IS NOT NULL;

-- About how many bytes the single clicks take, with their indexes; changed with them.
CREATE TABLE clicks_size (
    id    smallint PRIMARY KEY CHECK (id = 1),
    bytes bigint NOT NULL
);

INSERT INTO clicks_size (id, bytes) VALUES (1, 0);

-- Dead letters: rows of click_days that could not be decoded, as they were found; a new row took their place.
CREATE TABLE click_days_damaged (
    found_at timestamptz      NOT NULL DEFAULT now(),
    number   bigint           NOT NULL,
    day      integer          NOT NULL,
    kind     smallint         NOT NULL,
    name     text COLLATE "C" NOT NULL,
    counts   bytea            NOT NULL,
    visitors bytea            NOT NULL
);

-- What a day's visitors are hashed with; removed when the day is over.
CREATE TABLE click_salts (
    day  integer PRIMARY KEY,
    salt bytea NOT NULL
);
