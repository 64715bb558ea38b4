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
    state         INTEGER NOT NULL, -- 0 active, 1 disabled, 2 tombstone, 3 seeded, 4 deleted, 5 deleted while disabled
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
    tags          TEXT,             -- one per line
    made_with     INTEGER,          -- the number of the API key that made it; NULL: none did
    request_token BLOB              -- of the request that made it, if that had an idempotency key
) STRICT;

CREATE UNIQUE INDEX links_by_key ON links (domain, key);
CREATE INDEX links_by_owner ON links (owner);
CREATE INDEX links_by_expiry ON links (expires_at) WHERE state = 0 AND expires_at IS NOT NULL;
CREATE INDEX links_by_deletion ON links (updated_at) WHERE state >= 4;
CREATE INDEX links_in_quarantine ON links (updated_at) WHERE state = 2 AND origin <> 0 AND was_permanent = 0;
CREATE INDEX links_seeded ON links (domain) WHERE state = 3;

-- Which links carry a tag; only tagged links have rows here. ASCII case does not count.
CREATE TABLE link_tags (
    tag  TEXT    NOT NULL COLLATE NOCASE,
    link INTEGER NOT NULL,
    PRIMARY KEY (tag, link)
) STRICT, WITHOUT ROWID;

-- Clicks that a link with max_clicks has granted. Only such links have a row here.
CREATE TABLE link_clicks (
    link  INTEGER PRIMARY KEY,
    spent INTEGER NOT NULL
) STRICT;

-- The generation of the last link that had a key which was released since: the next link under the key has the next one,
-- so that nothing that names the former link is about the new one. Rows stay when the key is used again.
CREATE TABLE key_generations (
    domain     INTEGER NOT NULL,
    key        TEXT    NOT NULL COLLATE BINARY,
    generation INTEGER NOT NULL,
    PRIMARY KEY (domain, key)
) STRICT, WITHOUT ROWID;

-- Shards that take writes from this epoch on only. A file is not one node of many yet, so that links have no column for
-- their shard: it is worked out from the key.
CREATE TABLE shard_seals (
    shard INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL
) STRICT;

-- How many keys of a shard were released, by origin. What else the totals hold of a shard can be counted from its links.
CREATE TABLE released_keys (
    shard  INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (shard, origin)
) STRICT, WITHOUT ROWID;

-- Requests with an idempotency key: the keys that each is going to use, a line per link with origin and "domain/key", and
-- when it is finished what came of it, a line per link with "domain/key", or "-" where an alias had been taken.
CREATE TABLE idempotency (
    owner       INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    token       BLOB    NOT NULL, -- its links carry it
    version     INTEGER NOT NULL, -- of the plan
    plan        TEXT    NOT NULL,
    outcome     TEXT,
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
-- keys and still removes neighbouring rows. Unused keys lie together and have no index beside their table, so that to
-- mint or to take some touches few pages. Keys of open batches are in their batch alone.
CREATE TABLE keys (
    status INTEGER NOT NULL, -- 0 unused, 1 used
    slot   INTEGER NOT NULL,
    key    TEXT    NOT NULL COLLATE BINARY,
    PRIMARY KEY (status, slot, key)
) STRICT, WITHOUT ROWID;

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

-- Users, and what belongs to them.
--
-- A limit is an amount and a period in milliseconds; both are NULL where there is none.

CREATE TABLE users (
    id                   INTEGER PRIMARY KEY, -- the owner of their links
    first_name           TEXT    NOT NULL,
    middle_name          TEXT,
    last_name            TEXT    NOT NULL,
    email                TEXT    NOT NULL UNIQUE,
    password_hash        TEXT,
    role                 INTEGER NOT NULL,    -- 0 member, 1 administrator
    disabled_at          INTEGER,
    creations_amount     INTEGER,
    creations_period     INTEGER,
    redirections_amount  INTEGER,
    redirections_period  INTEGER,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL
) STRICT;

CREATE INDEX users_with_password ON users (id) WHERE password_hash IS NOT NULL;
CREATE INDEX users_with_limit ON users (id) WHERE redirections_amount IS NOT NULL;

CREATE INDEX users_disabled ON users (id) WHERE disabled_at IS NOT NULL;

-- The seq is the number of the key, by which links remember what made them. Rows are never removed.
CREATE TABLE api_keys (
    seq                  INTEGER PRIMARY KEY,
    prefix               TEXT    NOT NULL UNIQUE,
    secret_hash          BLOB    NOT NULL,
    user                 INTEGER NOT NULL,
    name                 TEXT    NOT NULL,
    scopes               INTEGER NOT NULL, -- 1 read + 2 create + 4 manage + 8 admin
    creations_amount     INTEGER,
    creations_period     INTEGER,
    redirections_amount  INTEGER,
    redirections_period  INTEGER,
    created_at           INTEGER NOT NULL,
    expires_at           INTEGER,
    revoked_at           INTEGER,          -- may lie in the future
    last_used_at         INTEGER,
    parent               TEXT,             -- the prefix of the API key that made it; NULL: a user did
    bucket               INTEGER           -- the key whose quota it counts into; NULL: its own
) STRICT;

CREATE INDEX api_keys_by_user ON api_keys (user);
CREATE INDEX api_keys_by_parent ON api_keys (parent);
CREATE INDEX api_keys_with_limit ON api_keys (seq) WHERE redirections_amount IS NOT NULL;

CREATE TABLE sessions (
    id          TEXT    PRIMARY KEY,
    secret_hash BLOB    NOT NULL,
    user        INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    used_at     INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    agent       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_user ON sessions (user, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE invites (
    secret_hash BLOB    PRIMARY KEY,
    role        INTEGER NOT NULL,
    made_by     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who may follow a private link beside its owner. An id is never given twice: that of a permission that is gone must
-- not name another.
CREATE TABLE permissions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    domain     INTEGER NOT NULL,
    key        TEXT    NOT NULL COLLATE BINARY,
    generation INTEGER NOT NULL,
    user       INTEGER NOT NULL,
    granted_at INTEGER NOT NULL,
    UNIQUE (domain, key, generation, user)
) STRICT;

-- What was done that touches security. Rows are only ever added.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   INTEGER,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    address TEXT
) STRICT;
