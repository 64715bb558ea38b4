use async_trait::async_trait;
use curt_core::ports::{Session, Sessions};
use curt_core::{OwnerId, PortResult, UnixMillis};
use rusqlite::{OptionalExtension, Row, params};

use super::{SqliteAccounts, rows_max};

// Columns are in the order of `session_of`.
const INSERT: &str = "INSERT INTO sessions (id, secret_hash, user, created_at, used_at, expires_at, agent) VALUES \
     (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
const FIND: &str = "SELECT id, secret_hash, user, created_at, used_at, expires_at, agent FROM sessions WHERE id = ?1";
const LIST: &str = "SELECT id, secret_hash, user, created_at, used_at, expires_at, agent FROM sessions INDEXED BY \
     sessions_by_user WHERE user = ?1 AND expires_at > ?2 ORDER BY created_at DESC, id DESC";

#[async_trait]
impl Sessions for SqliteAccounts {
    async fn add_session(&self, session: &Session) -> PortResult<bool> {
        let session = session.clone();
        self.db
            .writer
            .write("add a session", 1, move |work| {
                let added = work.connection.prepare_cached(INSERT)?.execute(params![
                    &*session.id,
                    session.secret_hash,
                    session.user.0.cast_signed(),
                    session.created_at.0,
                    session.used_at.0,
                    session.expires_at.0,
                    &*session.agent,
                ])?;
                Ok(added == 1)
            })
            .await
    }

    async fn session(&self, id: &str) -> PortResult<Option<Session>> {
        self.db.readers.look_up("find a session", |connection| {
            connection
                .prepare_cached(FIND)?
                .query_row([id], session_of)
                .optional()
        })
    }

    async fn sessions(&self, user: OwnerId, now: UnixMillis) -> PortResult<Vec<Session>> {
        // Few, since a sign-in ends the oldest; and signing in must not wait for other reads.
        self.db.readers.look_up("list sessions", |connection| {
            connection
                .prepare_cached(LIST)?
                .query_map((user.0.cast_signed(), now.0), session_of)?
                .collect()
        })
    }

    async fn end_session(&self, user: OwnerId, id: &str) -> PortResult<bool> {
        let id = id.to_owned();
        self.db
            .writer
            .write("end a session", 1, move |work| {
                let ended = work
                    .connection
                    .prepare_cached("DELETE FROM sessions WHERE id = ?1 AND user = ?2")?
                    .execute((&id, user.0.cast_signed()))?;
                Ok(ended == 1)
            })
            .await
    }

    async fn end_sessions(&self, user: OwnerId, but: Option<&str>) -> PortResult<u64> {
        let but = but.map(str::to_owned);
        self.db
            .writer
            .write("end the sessions of a user", 1, move |work| {
                let ended = work
                    .connection
                    .prepare_cached(
                        "DELETE FROM sessions INDEXED BY sessions_by_user WHERE user = ?1 AND id IS NOT ?2",
                    )?
                    .execute((user.0.cast_signed(), &but))?;
                Ok(ended as u64)
            })
            .await
    }

    async fn touch_session(
        &self,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<()> {
        let id = id.to_owned();
        self.db
            .writer
            .write("note the use of a session", 1, move |work| {
                work.connection
                    .prepare_cached(
                        "UPDATE sessions SET used_at = ?2, expires_at = ?3 WHERE id = ?1 AND used_at <= ?2",
                    )?
                    .execute((&id, used_at.0, expires_at.0))
                    .map(drop)
            })
            .await
    }

    async fn purge_sessions(&self, now: UnixMillis, limit: usize) -> PortResult<u64> {
        self.db
            .writer
            .write("purge sessions", limit, move |work| {
                let purged = work
                    .connection
                    .prepare_cached(
                        "DELETE FROM sessions WHERE id IN (\
                         SELECT id FROM sessions INDEXED BY sessions_by_expiry \
                         WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
                    )?
                    .execute((now.0, rows_max(limit)))?;
                Ok(purged as u64)
            })
            .await
    }
}

fn session_of(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        secret_hash: row.get(1)?,
        user: OwnerId(row.get::<_, i64>(2)?.cast_unsigned()),
        created_at: UnixMillis(row.get(3)?),
        used_at: UnixMillis(row.get(4)?),
        expires_at: UnixMillis(row.get(5)?),
        agent: row.get(6)?,
    })
}
