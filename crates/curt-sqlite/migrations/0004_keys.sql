-- Unused keys lie together and have no index beside their table, so that to mint or to take some touches few pages. Keys
-- of open batches are in their batch alone: a key is written when it is minted and removed when it is taken.
CREATE TABLE keys_by_status (
    status INTEGER NOT NULL, -- 0 unused, 1 used
    slot   INTEGER NOT NULL,
    key    TEXT    NOT NULL COLLATE BINARY,
    PRIMARY KEY (status, slot, key)
) STRICT, WITHOUT ROWID;

INSERT INTO keys_by_status SELECT status, slot, key FROM keys WHERE status <> 2;

DROP TABLE keys;
ALTER TABLE keys_by_status RENAME TO keys;
