-- The generation of the last link that had a key which was released since: the next link under the key has the next one,
-- so that nothing that names the former link is about the new one. Rows stay when the key is used again.
CREATE TABLE key_generations (
    domain     INTEGER NOT NULL,
    key        TEXT    NOT NULL COLLATE BINARY,
    generation INTEGER NOT NULL,
    PRIMARY KEY (domain, key)
) STRICT, WITHOUT ROWID;
