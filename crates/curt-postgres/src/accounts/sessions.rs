use async_trait::async_trait;
use curt_core::ports::{Session, Sessions};
use curt_core::{OwnerId, PortResult, UnixMillis};
use tokio_postgres::Row;

use super::PostgresAccounts;
use crate::decode::{hash, owner, rows_max, time};
use crate::engine::{Value, column};

// Columns are in the order of `session_of`.
const INSERT: &str = "INSERT INTO sessions (id, secret_hash, user_id, created_at, used_at, expires_at, agent) VALUES \
     ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING 1";
const FIND: &str = "SELECT id, secret_hash, user_id, created_at, used_at, expires_at, agent FROM sessions WHERE id = \
     $1";
const LIST: &str = "SELECT id, secret_hash, user_id, created_at, used_at, expires_at, agent FROM sessions WHERE \
     user_id = $1 AND expires_at > $2 ORDER BY created_at DESC, id DESC";
const END: &str = "DELETE FROM sessions WHERE id = $1 AND user_id = $2 RETURNING 1";
const END_ALL_BUT: &str = "WITH ended AS (DELETE FROM sessions \
     WHERE user_id = $1 AND id IS DISTINCT FROM $2 RETURNING 1) SELECT count(*) FROM ended";
const TOUCH: &str =
    "UPDATE sessions SET used_at = $2, expires_at = $3 WHERE id = $1 AND used_at <= $2";
const PURGE: &str = "WITH old AS MATERIALIZED (SELECT id FROM sessions \
     WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED), \
     gone AS (DELETE FROM sessions AS s USING old WHERE s.id = old.id RETURNING 1) SELECT count(*) FROM gone";

#[async_trait]
impl Sessions for PostgresAccounts {
    async fn add_session(&self, session: &Session) -> PortResult<bool> {
        let values: [Value<'_>; 7] = [
            &&*session.id,
            &&session.secret_hash[..],
            &session.user.0.cast_signed(),
            &session.created_at.0,
            &session.used_at.0,
            &session.expires_at.0,
            &&*session.agent,
        ];
        let engine = self.tables.engine().await?;
        let rows = engine.write("add a session", INSERT, &values).await?;
        Ok(!rows.is_empty())
    }

    async fn session(&self, id: &str) -> PortResult<Option<Session>> {
        const OP: &str = "find a session";
        let engine = self.tables.lookups().await?;
        let row = engine.look_up(OP, FIND, &[&id]).await?;
        row.map(|row| session_of(OP, &row)).transpose()
    }

    async fn sessions(&self, user: OwnerId, now: UnixMillis) -> PortResult<Vec<Session>> {
        const OP: &str = "list sessions";
        let engine = self.tables.engine().await?;
        let values: [Value<'_>; 2] = [&user.0.cast_signed(), &now.0];
        let rows = engine.read(OP, LIST, &values).await?;
        rows.iter().map(|row| session_of(OP, row)).collect()
    }

    async fn end_session(&self, user: OwnerId, id: &str) -> PortResult<bool> {
        let engine = self.tables.engine().await?;
        let values: [Value<'_>; 2] = [&id, &user.0.cast_signed()];
        let rows = engine.write("end a session", END, &values).await?;
        Ok(!rows.is_empty())
    }

    async fn end_sessions(&self, user: OwnerId, but: Option<&str>) -> PortResult<u64> {
        const OP: &str = "end the sessions of a user";
        let engine = self.tables.engine().await?;
        let values: [Value<'_>; 2] = [&user.0.cast_signed(), &but];
        count(OP, &engine.write(OP, END_ALL_BUT, &values).await?)
    }

    async fn touch_session(
        &self,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<()> {
        let engine = self.tables.engine().await?;
        let values: [Value<'_>; 3] = [&id, &used_at.0, &expires_at.0];
        let op = "note the use of a session";
        engine.write(op, TOUCH, &values).await.map(drop)
    }

    async fn purge_sessions(&self, now: UnixMillis, limit: usize) -> PortResult<u64> {
        const OP: &str = "purge sessions";
        let engine = self.tables.engine().await?.in_background();
        let values: [Value<'_>; 2] = [&now.0, &rows_max(limit)];
        count(OP, &engine.write(OP, PURGE, &values).await?)
    }
}

fn count(op: &'static str, rows: &[Row]) -> PortResult<u64> {
    let count: i64 = rows.first().map_or(Ok(0), |row| column(op, row, 0))?;
    Ok(count.cast_unsigned())
}

fn session_of(op: &'static str, row: &Row) -> PortResult<Session> {
    Ok(Session {
        id: column(op, row, 0)?,
        secret_hash: hash(op, row, 1)?,
        user: owner(op, row, 2)?,
        created_at: time(op, row, 3)?,
        used_at: time(op, row, 4)?,
        expires_at: time(op, row, 5)?,
        agent: column(op, row, 6)?,
    })
}
