//! The statements of copies.

use crate::statement::Cql;

/// A row under a key that has none.
pub(super) const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.links (namespace, domain, key, target, owner, made_with, state, origin, generation, version, \
     created_at, updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, \
     forward_query, title, tags, spent, request_token, change_mark, released) \
     VALUES (:namespace, :domain, :key, :target, :owner, :made_with, :state, :origin, :generation, :version, \
     :created_at, :updated_at, :expires_at, :valid_since, :max_clicks, :visibility, :password_hash, :status, \
     :was_permanent, :forward_query, :title, :tags, :spent, :request_token, :change_mark, :released) IF NOT EXISTS",
);

/// A row that replaces what is there, if that was not changed since.
pub(super) const REPLACE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET target = :target, owner = :owner, made_with = :made_with, state = :state, \
     origin = :origin, generation = :generation, version = :version, created_at = :created_at, \
     updated_at = :updated_at, expires_at = :expires_at, valid_since = :valid_since, max_clicks = :max_clicks, \
     visibility = :visibility, password_hash = :password_hash, status = :status, was_permanent = :was_permanent, \
     forward_query = :forward_query, title = :title, tags = :tags, spent = :spent, request_token = :request_token, \
     change_mark = :change_mark, spend_mark = null, released = :released \
     WHERE namespace = :namespace AND domain = :domain AND key = :key \
     IF change_mark = :seen_change AND spend_mark = :seen_spend",
);

/// The row of a key whose link was released.
pub(super) const INSERT_RELEASED: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.links (namespace, domain, key, state, generation, version, change_mark) \
     VALUES (:namespace, :domain, :key, 100, :generation, 0, :change_mark) IF NOT EXISTS",
);

pub(super) const REPLACE_RELEASED: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET state = 100, generation = :generation, change_mark = :change_mark, target = null, \
     owner = null, made_with = null, origin = null, created_at = null, updated_at = null, expires_at = null, \
     valid_since = null, max_clicks = null, visibility = null, password_hash = null, status = null, \
     was_permanent = null, forward_query = null, title = null, tags = null, spent = null, request_token = null, \
     spend_mark = null WHERE namespace = :namespace AND domain = :domain AND key = :key \
     IF change_mark = :seen_change AND spend_mark = :seen_spend",
);

/// A part of all links of the keyspace, by the hash that places them.
pub(super) const SCAN: Cql = Cql::read(
    "SELECT token(namespace, domain, key) AS hash, namespace, domain, key, state, released FROM KEYSPACE.links \
     WHERE token(namespace, domain, key) > ? AND token(namespace, domain, key) <= ? LIMIT ?",
);

/// Sums of released keys of a shard.
pub(super) const GET_TOTALS: Cql =
    Cql::read("SELECT released FROM KEYSPACE.links WHERE namespace = ? AND domain = ? AND key = ?")
        .serial();

pub(super) const INSERT_TOTALS: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.links (namespace, domain, key, state, generation, version, released) \
     VALUES (?, ?, ?, 100, 0, 0, ?) IF NOT EXISTS",
);

pub(super) const UPDATE_TOTALS: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET released = ? WHERE namespace = ? AND domain = ? AND key = ? IF released = ?",
);

pub(super) const SCAN_REQUESTS: Cql = Cql::read(
    "SELECT token(namespace, owner, key) AS hash, namespace, owner, key FROM KEYSPACE.requests \
     WHERE token(namespace, owner, key) > ? AND token(namespace, owner, key) <= ? LIMIT ?",
);

pub(super) const INSERT_REQUEST: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.requests (namespace, owner, key, fingerprint, request_token, version, at, keys, finished, \
     outcome_at, outcome) VALUES (:namespace, :owner, :key, :fingerprint, :request_token, :version, :at, :keys, \
     :finished, :outcome_at, :outcome) IF NOT EXISTS",
);

pub(super) const REPLACE_REQUEST: Cql = Cql::conditional(
    "UPDATE KEYSPACE.requests SET fingerprint = :fingerprint, request_token = :request_token, version = :version, \
     at = :at, keys = :keys, finished = :finished, outcome_at = :outcome_at, outcome = :outcome \
     WHERE namespace = :namespace AND owner = :owner AND key = :key \
     IF request_token = :seen_token AND version = :seen_version AND at = :seen_at AND finished = :seen_finished",
);
