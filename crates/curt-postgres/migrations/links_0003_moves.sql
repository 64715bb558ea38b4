-- Copies of shards that move to this node or left it. A shard without a row is this node's own, if it has one at all.
CREATE TABLE shard_copies (
    fence   bigint   NOT NULL, -- of the last mover; those with a lower one change nothing
    retired bigint   NOT NULL, -- the epoch since which another node has owned it; 0: never
    shard   smallint PRIMARY KEY,
    state   smallint NOT NULL  -- 0 gone, 1 being copied to here, 2 own, 3 another node's, 4 another's and not in the totals
);

-- Shards whose changes are remembered, by triggers that are switched on meanwhile, and by which mover.
CREATE TABLE shard_tracking (
    fence bigint   NOT NULL,
    shard smallint PRIMARY KEY
);

-- What has changed: a link (domain and key), or the record of a request (owner and name).
CREATE TABLE shard_changes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    holder bigint  NOT NULL,
    is_link boolean NOT NULL,
    name   text COLLATE "C" NOT NULL
);
