-- Links in an engine that spreads tables over its own servers (Citus, CockroachDB, YugabyteDB).
--
-- The column by which a table is spread is the first of its primary key, and there is no other unique key. Other indexes
-- are in an order, which YugabyteDB has to be told. A statement that changes
-- something is about one row. There are no foreign keys, triggers, sequences and collations: what these engines have in
-- common. Statements are run one by one, and may be run again.
CREATE TABLE IF NOT EXISTS links (
    domain        bigint   NOT NULL,
    key           text     NOT NULL,
    owner         bigint   NOT NULL,
    generation    bigint   NOT NULL,
    version       bigint   NOT NULL,
    created_at    bigint   NOT NULL,
    updated_at    bigint,
    expires_at    bigint,
    valid_since   bigint,
    max_clicks    bigint,
    spent         bigint   NOT NULL, -- clicks taken, of a link that has only so many
    made_with     bigint,
    mark          bigint   NOT NULL, -- random, of the insert: tells a new row from one that was there
    state         smallint NOT NULL,
    origin        smallint NOT NULL,
    visibility    smallint NOT NULL,
    status        smallint,
    was_permanent boolean  NOT NULL,
    forward_query boolean  NOT NULL,
    target        text     NOT NULL,
    password_hash text,
    title         text,
    tags          text[],
    tags_lower    text[],            -- ASCII letters in lower case
    request_token bytea,
    PRIMARY KEY (key, domain)
);
CREATE INDEX IF NOT EXISTS links_by_key ON links (domain ASC, key);
CREATE INDEX IF NOT EXISTS links_by_age ON links (created_at ASC, domain, key);
CREATE INDEX IF NOT EXISTS links_by_owner ON links (owner ASC, created_at, domain, key);
CREATE INDEX IF NOT EXISTS links_by_expiry ON links (expires_at ASC, domain, key) WHERE state = 0 AND expires_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS links_by_deletion ON links (updated_at ASC, domain, key) WHERE state > 3;
CREATE INDEX IF NOT EXISTS links_in_quarantine ON links (updated_at ASC) WHERE state = 2 AND origin <> 0 AND NOT was_permanent;

-- Links whose keys were released: the next link under the key has the next generation. Also counted as created.
CREATE TABLE IF NOT EXISTS released_links (
    domain     bigint   NOT NULL,
    key        text     NOT NULL,
    generation bigint   NOT NULL,
    origin     smallint NOT NULL,
    PRIMARY KEY (key, domain, generation)
);

CREATE TABLE IF NOT EXISTS idempotency (
    owner       bigint NOT NULL,
    name        text   NOT NULL,
    created_at  bigint NOT NULL,
    version     bigint NOT NULL,
    fingerprint bytea  NOT NULL,
    token       bytea  NOT NULL,
    plan        text   NOT NULL,
    outcome     text,
    PRIMARY KEY (name, owner)
);
CREATE INDEX IF NOT EXISTS idempotency_by_age ON idempotency (created_at ASC);

-- Written to by checks of health.
CREATE TABLE IF NOT EXISTS pings (
    slot  bigint PRIMARY KEY,
    count bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS cursors (
    name  text   PRIMARY KEY,
    value bigint NOT NULL
);
