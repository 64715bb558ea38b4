-- Every table that the embedded product needs.
--
-- Numbers below 2 and NULL take no byte of their own in a record, so the usual value of a rare column is one of them.

-- A link. The id grows with every link, so that rows are appended and lists read newest first without an index of
-- their own; only the small index over (domain, key) is written at random places. It is the judge of uniqueness (K-1).
CREATE TABLE links (
    id            INTEGER PRIMARY KEY,
    domain        INTEGER NOT NULL,
    key           TEXT    NOT NULL COLLATE BINARY,
    target        TEXT    NOT NULL,
    owner         INTEGER NOT NULL,
    state         INTEGER NOT NULL, -- 0 active, 1 disabled, 2 tombstone, 3 seeded
    origin        INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER,          -- NULL: as created_at
    expires_at    INTEGER,
    valid_since   INTEGER,
    max_clicks    INTEGER,
    visibility    INTEGER NOT NULL,
    password_hash TEXT,
    status        INTEGER,          -- NULL: 302
    was_permanent INTEGER NOT NULL, -- 1 once it had status 301 or 308: browsers may remember it for ever
    forward_query INTEGER NOT NULL,
    title         TEXT,
    tags          TEXT              -- one per line
) STRICT;

CREATE UNIQUE INDEX links_by_key ON links (domain, key);
CREATE INDEX links_by_owner ON links (owner);
CREATE INDEX links_by_expiry ON links (expires_at) WHERE state = 0 AND expires_at IS NOT NULL;
CREATE INDEX links_in_quarantine ON links (updated_at) WHERE state = 2 AND origin <> 0 AND was_permanent = 0;
CREATE INDEX links_seeded ON links (domain) WHERE state = 3;

-- Which links carry a tag; only tagged links have rows here. ASCII case does not count.
CREATE TABLE link_tags (
    tag  TEXT    NOT NULL COLLATE NOCASE,
    link INTEGER NOT NULL,
    PRIMARY KEY (tag, link)
) STRICT, WITHOUT ROWID;

-- What an Idempotency-Key was answered: one line per link, "domain/key", or "-" where an alias had been taken.
CREATE TABLE idempotency (
    owner       INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    outcome     TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Totals, moved in the same transaction as what they count.
CREATE TABLE counters (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Minted keys. The slot is a hash of the key: batches are taken in its order, which looks random to a reader of the
-- keys and still removes neighbouring rows.
CREATE TABLE keys (
    slot   INTEGER NOT NULL,
    key    TEXT    NOT NULL COLLATE BINARY,
    status INTEGER NOT NULL, -- 0 unused, 1 used, 2 in an open batch
    PRIMARY KEY (slot, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_unused ON keys (slot, key) WHERE status = 0;

-- Keys that were used, in the form that moves them.
CREATE TABLE keys_used (
    slot INTEGER NOT NULL,
    key  TEXT    NOT NULL COLLATE BINARY,
    PRIMARY KEY (slot, key)
) STRICT, WITHOUT ROWID;

-- Batches that were taken and are not closed, with their keys, one per line.
CREATE TABLE key_batches (
    seq      INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL UNIQUE,
    taken_at INTEGER NOT NULL,
    keys     TEXT    NOT NULL
) STRICT;

CREATE TABLE cursors (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE owners (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
    seq         INTEGER PRIMARY KEY,
    prefix      TEXT    NOT NULL UNIQUE,
    secret_hash BLOB    NOT NULL,
    owner       INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER
) STRICT;

CREATE UNIQUE INDEX api_keys_in_force ON api_keys (owner, name) WHERE revoked_at IS NULL;
