-- Copies of shards that move to this file or left it. A shard without a row is this file's own, if it has one at all.
CREATE TABLE shard_copies (
    shard   INTEGER PRIMARY KEY,
    fence   INTEGER NOT NULL, -- of the last mover; those with a lower one change nothing
    retired INTEGER NOT NULL, -- the epoch since which another node has owned it; 0: never
    state   INTEGER NOT NULL  -- 0 gone, 1 being copied to here, 2 own, 3 another node's, 4 another's and not in the totals
) STRICT;

-- Shards whose changes are remembered, by triggers that are there only meanwhile, and by which mover.
CREATE TABLE shard_tracking (
    shard INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL
) STRICT;

-- What has changed, of any shard: a link (domain and key), or the record of a request (owner and key).
CREATE TABLE shard_changes (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    holder  INTEGER NOT NULL,
    is_link INTEGER NOT NULL,
    name    TEXT    NOT NULL
) STRICT;
