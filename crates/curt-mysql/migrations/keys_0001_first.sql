-- Minted keys: one shard of the keys database. MySQL and MariaDB commit each of these statements by itself, so that a
-- step which is broken off is repeated from its start.
CREATE TABLE IF NOT EXISTS minted_keys (
    id     BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, -- the order in which keys are taken
    name   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    status TINYINT NOT NULL DEFAULT 0,              -- 0 unused, 1 used, 2 in an open batch
    batch  BIGINT UNSIGNED,
    PRIMARY KEY (id),
    UNIQUE KEY by_name (name),
    KEY unused (status, id),
    KEY by_batch (batch)
) ENGINE = InnoDB;

-- Used keys, in the form that moves them.
CREATE TABLE IF NOT EXISTS used_keys (
    name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB;

-- Batches that were taken and are not closed; `minted_keys.batch` says which keys are theirs.
CREATE TABLE IF NOT EXISTS key_batches (
    id       BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    name     VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    taken_at BIGINT NOT NULL,
    size     BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY by_name (name),
    KEY by_age (taken_at, id)
) ENGINE = InnoDB;

-- The highest fencing token of an owner of this shard that inserted: those before it are refused.
CREATE TABLE IF NOT EXISTS key_owner (
    one   TINYINT NOT NULL,
    fencing_token BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (one)
) ENGINE = InnoDB;

INSERT IGNORE INTO key_owner (one, fencing_token) VALUES (1, 0);

-- Totals for K-2, moved in the transaction of what they count. One row would make everybody wait for everybody, so
-- each session adds to one of sixteen, and the total is their sum.
CREATE TABLE IF NOT EXISTS key_counts (
    slot     INT NOT NULL,
    minted   BIGINT NOT NULL DEFAULT 0,
    free     BIGINT NOT NULL DEFAULT 0,
    opened   BIGINT NOT NULL DEFAULT 0,
    recycled BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (slot)
) ENGINE = InnoDB;

INSERT IGNORE INTO key_counts (slot)
VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);
