-- People, what stands for them, and what belongs to them.
--
-- A limit is an amount and a period in milliseconds; both are NULL where there is none.

CREATE TABLE users (
    id                  bigint PRIMARY KEY, -- the owner of their links
    first_name          text     NOT NULL,
    middle_name         text,
    last_name           text     NOT NULL,
    email               text COLLATE "C" NOT NULL UNIQUE,
    password_hash       text,
    role                smallint NOT NULL,  -- 0 member, 1 administrator
    disabled_at         bigint,
    creations_amount    bigint,
    creations_period    bigint,
    redirections_amount bigint,
    redirections_period bigint,
    created_at          bigint   NOT NULL,
    updated_at          bigint   NOT NULL
);

CREATE INDEX users_with_password ON users (id) WHERE password_hash IS NOT NULL;
CREATE INDEX users_with_limit ON users (id) WHERE redirections_amount IS NOT NULL;
CREATE INDEX users_disabled ON users (id) WHERE disabled_at IS NOT NULL;

-- The seq is the number of the key, by which links remember what made them. Rows are never removed.
CREATE TABLE api_keys (
    seq                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    prefix              text COLLATE "C" NOT NULL UNIQUE,
    secret_hash         bytea    NOT NULL,
    user_id             bigint   NOT NULL,
    name                text COLLATE "C" NOT NULL,
    scopes              smallint NOT NULL,  -- 1 read + 2 create + 4 manage + 8 admin
    creations_amount    bigint,
    creations_period    bigint,
    redirections_amount bigint,
    redirections_period bigint,
    created_at          bigint   NOT NULL,
    expires_at          bigint,
    revoked_at          bigint,             -- may lie in the future
    last_used_at        bigint,
    parent              text COLLATE "C",   -- the prefix of the API key that made it; NULL: a user did
    bucket              bigint              -- the key whose quota it counts into; NULL: its own
) WITH (fillfactor = 80); -- room to note their use without touching an index

CREATE INDEX api_keys_by_parent ON api_keys (parent) WHERE parent IS NOT NULL;
CREATE INDEX api_keys_by_user ON api_keys (user_id, seq);
CREATE INDEX api_keys_with_limit ON api_keys (seq) WHERE redirections_amount IS NOT NULL;

CREATE TABLE sessions (
    id          text COLLATE "C" PRIMARY KEY,
    secret_hash bytea  NOT NULL,
    user_id     bigint NOT NULL,
    created_at  bigint NOT NULL,
    used_at     bigint NOT NULL,
    expires_at  bigint NOT NULL,
    agent       text   NOT NULL
);

CREATE INDEX sessions_by_user ON sessions (user_id, created_at, id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE invites (
    secret_hash bytea PRIMARY KEY,
    role        smallint NOT NULL,
    made_by     bigint   NOT NULL,
    created_at  bigint   NOT NULL,
    expires_at  bigint   NOT NULL
);

-- Who may follow a private link beside its owner. An id is never given twice: that of a permission that is gone must
-- not name another.
CREATE TABLE permissions (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain     bigint NOT NULL,
    key        text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    user_id    bigint NOT NULL,
    granted_at bigint NOT NULL,
    UNIQUE (domain, key, generation, user_id)
);

-- What was done that touches security. Rows are only ever added.
CREATE TABLE audit (
    seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    actor   bigint,
    action  text   NOT NULL,
    subject text   NOT NULL,
    address text
);
