-- The map of shards to nodes, in one row, and notes that belong to it. Each moves by compare-and-set of its version.
CREATE TABLE shard_map (
    one     boolean PRIMARY KEY CHECK (one),
    version bigint NOT NULL,
    map     text   NOT NULL
);

CREATE TABLE shard_map_notes (
    name    text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    text    text   NOT NULL
);
