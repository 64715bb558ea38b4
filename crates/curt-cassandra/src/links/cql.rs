//! The statements about links. All writes of a link are conditional: Cassandra orders these by their ballots, and others
//! by the writer's clock.

use crate::statement::Cql;

macro_rules! columns {
    () => {
        "domain, key, target, owner, made_with, state, origin, generation, version, created_at, updated_at, \
         expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, forward_query, \
         title, tags, spent, request_token, change_mark, spend_mark, released"
    };
}

pub(super) const GET: Cql = Cql::read(concat!(
    "SELECT ",
    columns!(),
    " FROM KEYSPACE.links WHERE namespace = ? AND domain = ? AND key = ?"
));

pub(super) const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.links (namespace, domain, key, target, owner, made_with, state, origin, generation, version, \
     created_at, updated_at, expires_at, valid_since, max_clicks, visibility, password_hash, status, was_permanent, \
     forward_query, title, tags, spent, request_token, change_mark, released) \
     VALUES (:namespace, :domain, :key, :target, :owner, :made_with, :state, :origin, :generation, :version, \
     :created_at, :updated_at, :expires_at, :valid_since, :max_clicks, :visibility, :password_hash, :status, \
     :was_permanent, :forward_query, :title, :tags, :spent, :request_token, :change_mark, :released) \
     IF NOT EXISTS",
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
    "INSERT INTO KEYSPACE.links (namespace, domain, key, state, generation, version, change_mark, released) \
     VALUES (:namespace, :domain, :key, 100, :generation, 0, :change_mark, :released) IF NOT EXISTS",
);

pub(super) const REPLACE_RELEASED: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET state = 100, generation = :generation, change_mark = :change_mark, \
     released = :released, target = null, owner = null, made_with = null, origin = null, created_at = null, \
     updated_at = null, expires_at = null, valid_since = null, max_clicks = null, visibility = null, \
     password_hash = null, status = null, was_permanent = null, forward_query = null, title = null, tags = null, \
     spent = null, request_token = null, spend_mark = null \
     WHERE namespace = :namespace AND domain = :domain AND key = :key \
     IF change_mark = :seen_change AND spend_mark = :seen_spend",
);

pub(super) const EDIT: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET target = :target, owner = :owner, state = :state, version = :version, \
     updated_at = :updated_at, expires_at = :expires_at, valid_since = :valid_since, max_clicks = :max_clicks, \
     visibility = :visibility, password_hash = :password_hash, status = :status, was_permanent = :was_permanent, \
     forward_query = :forward_query, title = :title, tags = :tags, change_mark = :change_mark \
     WHERE namespace = :namespace AND domain = :domain AND key = :key \
     IF generation = :seen_generation AND version = :seen_version",
);

pub(super) const SPEND: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET spent = ?, spend_mark = ? WHERE namespace = ? AND domain = ? AND key = ? \
     IF generation = ? AND version = ? AND state = 0 AND spent = ?",
);

/// From a tombstone to a released row.
pub(super) const RELEASE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET state = 100, released = :released, change_mark = :change_mark, target = null, \
     owner = null, made_with = null, origin = null, created_at = null, updated_at = null, expires_at = null, \
     valid_since = null, max_clicks = null, visibility = null, status = null, was_permanent = null, \
     forward_query = null, spent = null, request_token = null, spend_mark = null \
     WHERE namespace = :namespace AND domain = :domain AND key = :key \
     IF state = 2 AND generation = :seen_generation AND version = :seen_version",
);

/// A part of all links of the keyspace, by the hash that places them.
pub(super) const SCAN: Cql = Cql::read(
    "SELECT token(namespace, domain, key) AS hash, namespace, domain, key, state, origin, released \
     FROM KEYSPACE.links WHERE token(namespace, domain, key) > ? AND token(namespace, domain, key) <= ? LIMIT ?",
);

/// Released links of a shard.
pub(super) const GET_COUNTS: Cql =
    Cql::read("SELECT released FROM KEYSPACE.links WHERE namespace = ? AND domain = ? AND key = ?")
        .serial();

pub(super) const INSERT_COUNTS: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.links (namespace, domain, key, state, generation, version, released) \
     VALUES (?, ?, ?, 100, 0, 0, ?) IF NOT EXISTS",
);

pub(super) const UPDATE_COUNTS: Cql = Cql::conditional(
    "UPDATE KEYSPACE.links SET released = ? WHERE namespace = ? AND domain = ? AND key = ? IF released = ?",
);
