use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{SessionRows, StoredSession};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode};
use curt_core::ports::Session;
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;

use super::{CassandraAccounts, mark_of};
use crate::failure::corrupt;
use crate::statement::Cql;

const GET: Cql = Cql::read(
    "SELECT id, secret_hash, user, created_at, used_at, expires_at, agent, ended, change_mark FROM KEYSPACE.sessions \
     WHERE namespace = ? AND id = ?",
);
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.sessions (namespace, id, secret_hash, user, created_at, used_at, expires_at, agent, ended, \
     change_mark) VALUES (?, ?, ?, ?, ?, ?, ?, ?, false, ?) IF NOT EXISTS",
);
const END: Cql = Cql::conditional(
    "UPDATE KEYSPACE.sessions SET ended = true, change_mark = ? WHERE namespace = ? AND id = ? \
     IF user = ? AND ended = false",
);
const TOUCH: Cql = Cql::conditional(
    "UPDATE KEYSPACE.sessions SET used_at = ?, expires_at = ? WHERE namespace = ? AND id = ? \
     IF ended = false AND used_at <= ?",
);
const PURGE: Cql = Cql::conditional(
    "DELETE FROM KEYSPACE.sessions WHERE namespace = ? AND id = ? IF expires_at <= ?",
);

#[derive(DeserializeRow)]
struct SessionRow {
    id: String,
    secret_hash: Vec<u8>,
    user: i64,
    created_at: i64,
    used_at: i64,
    expires_at: i64,
    agent: String,
    ended: bool,
    change_mark: Vec<u8>,
}

impl SessionRow {
    fn into_stored(self, op: &'static str) -> PortResult<StoredSession> {
        let hash = self.secret_hash.try_into();
        let session = Session {
            id: self.id.into(),
            secret_hash: hash.map_err(|_| corrupt(op, "secret_hash"))?,
            user: OwnerId(self.user.cast_unsigned()),
            created_at: UnixMillis(self.created_at),
            used_at: UnixMillis(self.used_at),
            expires_at: UnixMillis(self.expires_at),
            agent: self.agent.into(),
        };
        Ok(StoredSession {
            session,
            is_ended: self.ended,
            changed_by: mark_of(self.change_mark),
        })
    }
}

#[async_trait]
impl SessionRows for CassandraAccounts {
    async fn get_session(
        &self,
        op: &'static str,
        id: &str,
        mode: ReadMode,
    ) -> PortResult<Option<StoredSession>> {
        let values = (&*self.namespace, id);
        let row: Option<SessionRow> = self.engine.first(op, GET.at(mode), values).await?;
        row.map(|row| row.into_stored(op)).transpose()
    }

    async fn insert_session(
        &self,
        op: &'static str,
        session: &Session,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = (
            &*self.namespace,
            &*session.id,
            &session.secret_hash[..],
            session.user.0.cast_signed(),
            session.created_at.0,
            session.used_at.0,
            session.expires_at.0,
            &*session.agent,
            &mark.0[..],
        );
        self.engine.decide(op, INSERT, values).await
    }

    async fn end_session(
        &self,
        op: &'static str,
        user: OwnerId,
        id: &str,
        mark: Mark,
    ) -> PortResult<Decided> {
        let values = (&mark.0[..], &*self.namespace, id, user.0.cast_signed());
        self.engine.decide(op, END, values).await
    }

    async fn touch_session(
        &self,
        op: &'static str,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<Decided> {
        let values = (used_at.0, expires_at.0, &*self.namespace, id, used_at.0);
        self.engine.decide(op, TOUCH, values).await
    }

    async fn purge_session(
        &self,
        op: &'static str,
        id: &str,
        now: UnixMillis,
    ) -> PortResult<Decided> {
        let values = (&*self.namespace, id, now.0);
        self.engine.decide(op, PURGE, values).await
    }
}
