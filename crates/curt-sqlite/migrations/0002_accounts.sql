-- People instead of bare owners, and what belongs to them.
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

-- An owner could do everything, and is found under an address that nobody can have. Names that differ by case alone
-- would give the same one: the later of them get their id into it.
INSERT INTO users (id, first_name, last_name, email, role, created_at, updated_at)
SELECT id, name, '',
       CASE row_number() OVER (PARTITION BY lower(name) ORDER BY id)
           WHEN 1 THEN lower(name) || '@localhost'
           ELSE lower(name) || '@' || id || '.localhost'
       END,
       1, created_at, created_at
FROM owners;

DROP TABLE owners;

-- The seq is the number of the key, by which links remember what made them. Rows are never removed.
ALTER TABLE api_keys RENAME TO api_keys_before;

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
    last_used_at         INTEGER
) STRICT;

INSERT INTO api_keys (seq, prefix, secret_hash, user, name, scopes, created_at, expires_at, revoked_at)
SELECT seq, prefix, secret_hash, owner, name, 15, created_at, expires_at, revoked_at FROM api_keys_before;

DROP TABLE api_keys_before;

CREATE INDEX api_keys_by_user ON api_keys (user);
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

-- The number of the API key that made the link; NULL: none did.
ALTER TABLE links ADD COLUMN made_with INTEGER;
