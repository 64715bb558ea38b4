-- What is counted about clicks, and the clicks themselves, of every process that counts into this database.

-- Up to where each partition of each stream is counted, moved in the same transaction as the counts (C-1).
CREATE TABLE click_offsets (
    stream      bigint NOT NULL,
    partition   bigint NOT NULL,
    next_offset bigint NOT NULL,
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
