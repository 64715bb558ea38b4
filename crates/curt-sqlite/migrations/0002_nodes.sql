-- The name by which this file is known from other nodes, made at the first question.
CREATE TABLE node_identity (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    identity TEXT    NOT NULL
) STRICT;

-- The map of shards to nodes, in one row, and notes that belong to it. Each moves by compare-and-set of its version.
CREATE TABLE shard_map (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    map     TEXT    NOT NULL
) STRICT;

CREATE TABLE shard_map_notes (
    name    TEXT    PRIMARY KEY,
    version INTEGER NOT NULL,
    text    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
