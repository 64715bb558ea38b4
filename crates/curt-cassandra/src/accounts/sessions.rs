use async_trait::async_trait;
use curt_core::ports::{Session, Sessions};
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::DeserializeRow;

use super::CassandraAccounts;
use crate::failure::corrupt;
use crate::links::lists::sortable;
use crate::ordered::{POSITION_BYTES_MAX, Place, Span, successor};
use crate::pause::pause;
use crate::statement::{Cql, Decided};
use crate::together::together;

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
/// What has expired lets nobody in, even if it came back.
const PURGE: Cql = Cql::conditional(
    "DELETE FROM KEYSPACE.sessions WHERE namespace = ? AND id = ? IF expires_at <= ?",
);

/// Sessions by the hour in which they expire.
const ENDS: &str = "sessions/ends";
const HOUR: i64 = 3_600_000;
const SESSIONS_AT_ONCE: usize = 200;

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
    fn into_session(self, op: &'static str) -> PortResult<Session> {
        let hash = self.secret_hash.try_into();
        Ok(Session {
            id: self.id.into(),
            secret_hash: hash.map_err(|_| corrupt(op, "secret_hash"))?,
            user: OwnerId(self.user.cast_unsigned()),
            created_at: UnixMillis(self.created_at),
            used_at: UnixMillis(self.used_at),
            expires_at: UnixMillis(self.expires_at),
            agent: self.agent.into(),
        })
    }
}

/// In the list of its user, in the order of its age.
fn user_place(session: &Session) -> Place {
    Place {
        list: user_list(session.user),
        bucket: vec![0],
        position: [&sortable(session.created_at.0)[..], session.id.as_bytes()].concat(),
    }
}

fn user_list(user: OwnerId) -> String {
    format!("sessions/user/{user}")
}

/// In the list of those that expire. An hour does for many touches.
fn end_place(id: &str, expires_at: UnixMillis) -> Place {
    let hour = sortable(expires_at.0.div_euclid(HOUR));
    Place {
        list: ENDS.to_owned(),
        bucket: hour.to_vec(),
        position: [&hour[..], id.as_bytes()].concat(),
    }
}

fn id_at(position: &[u8]) -> Option<&str> {
    let (_, id) = position.split_first_chunk::<8>()?;
    str::from_utf8(id).ok()
}

#[async_trait]
impl Sessions for CassandraAccounts {
    async fn add_session(&self, session: &Session) -> PortResult<bool> {
        const OP: &str = "add a session";
        self.engine
            .change(OP, self.try_add_session(OP, session))
            .await
    }

    async fn session(&self, id: &str) -> PortResult<Option<Session>> {
        const OP: &str = "look up a session";
        let found = self.find_session(OP, GET, id);
        self.engine.look_up(OP, found).await
    }

    async fn sessions(&self, user: OwnerId, now: UnixMillis) -> PortResult<Vec<Session>> {
        const OP: &str = "list sessions";
        let mut found = self.engine.list(OP, self.sessions_of(OP, user)).await?;
        found.retain(|session| session.expires_at > now);
        Ok(found)
    }

    async fn end_session(&self, user: OwnerId, id: &str) -> PortResult<bool> {
        const OP: &str = "end a session";
        self.engine.change(OP, self.try_end(OP, user, id)).await
    }

    async fn end_sessions(&self, user: OwnerId, but: Option<&str>) -> PortResult<u64> {
        const OP: &str = "end sessions";
        self.engine
            .change_much(OP, self.end_sessions_of(OP, user, but))
            .await
    }

    async fn touch_session(
        &self,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<()> {
        const OP: &str = "note the use of a session";
        let touch = async {
            self.lists.add(OP, [end_place(id, expires_at)]).await?;
            let values = (used_at.0, expires_at.0, &*self.namespace, id, used_at.0);
            match self.engine.decide(OP, TOUCH, values).await? {
                Decided::Applied | Decided::Refused => Ok(()),
                Decided::Unknown(error) => Err(error),
            }
        };
        self.engine.change(OP, touch).await
    }

    async fn purge_sessions(&self, now: UnixMillis, limit: usize) -> PortResult<u64> {
        const OP: &str = "purge sessions";
        self.engine
            .change_much(OP, self.purge_expired(OP, now, limit))
            .await
    }
}

impl CassandraAccounts {
    async fn find_session(
        &self,
        op: &'static str,
        cql: Cql,
        id: &str,
    ) -> PortResult<Option<Session>> {
        let row: Option<SessionRow> = self.engine.first(op, cql, (&*self.namespace, id)).await?;
        let row = row.filter(|row| !row.ended);
        row.map(|row| row.into_session(op)).transpose()
    }

    async fn try_add_session(&self, op: &'static str, session: &Session) -> PortResult<bool> {
        let places = [
            user_place(session),
            end_place(&session.id, session.expires_at),
        ];
        self.lists.add(op, places).await?;
        let mark: [u8; 16] = rand::random();
        loop {
            let values = (
                &*self.namespace,
                &*session.id,
                &session.secret_hash[..],
                session.user.0.cast_signed(),
                session.created_at.0,
                session.used_at.0,
                session.expires_at.0,
                &*session.agent,
                &mark[..],
            );
            match self.engine.decide(op, INSERT, values).await? {
                Decided::Applied => return Ok(true),
                Decided::Refused | Decided::Unknown(_) => {}
            }
            let values = (&*self.namespace, &*session.id);
            let row: Option<SessionRow> = self.engine.first(op, GET.serial(), values).await?;
            if let Some(row) = row {
                return Ok(row.change_mark == mark);
            }
            pause().await;
        }
    }

    /// Those that were not ended, expired ones too, newest first.
    async fn sessions_of(&self, op: &'static str, user: OwnerId) -> PortResult<Vec<Session>> {
        let mut span = Span {
            list: user_list(user),
            buckets: (Vec::new(), vec![u8::MAX]),
            positions: (Vec::new(), vec![u8::MAX; POSITION_BYTES_MAX]),
            is_rising: false,
        };
        let mut sessions = Vec::new();
        loop {
            let entries = self.lists.read(op, &span, SESSIONS_AT_ONCE).await?;
            let places = entries.entries.iter().map(|entry| entry.place.clone());
            let found = together(places.map(|place| async move {
                match id_at(&place.position) {
                    Some(id) => self.find_session(op, GET, id).await,
                    None => Ok(None),
                }
            }));
            let found = found.await?;
            let mut stale = Vec::new();
            for (entry, session) in entries.entries.into_iter().zip(found) {
                span.follow(&entry.place);
                match session {
                    Some(session) if user_place(&session) == entry.place => sessions.push(session),
                    _ => stale.push(entry),
                }
            }
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                return Ok(sessions);
            }
        }
    }

    async fn try_end(&self, op: &'static str, user: OwnerId, id: &str) -> PortResult<bool> {
        let mark: [u8; 16] = rand::random();
        let namespace = &*self.namespace;
        let values = (&mark[..], namespace, id, user.0.cast_signed());
        match self.engine.decide(op, END, values).await? {
            Decided::Applied => Ok(true),
            Decided::Refused => Ok(false),
            Decided::Unknown(error) => {
                let found = self.engine.first(op, GET.serial(), (namespace, id)).await;
                match found {
                    Ok(Some(SessionRow {
                        ended: true,
                        change_mark,
                        ..
                    })) => Ok(change_mark == mark),
                    _ => Err(error),
                }
            }
        }
    }

    pub(super) async fn end_sessions_of(
        &self,
        op: &'static str,
        user: OwnerId,
        but: Option<&str>,
    ) -> PortResult<u64> {
        let sessions = self.sessions_of(op, user).await?;
        let others = sessions.iter().filter(|session| but != Some(&*session.id));
        let ended = together(others.map(|session| self.try_end(op, user, &session.id))).await?;
        Ok(ended.into_iter().filter(|ended| *ended).count() as u64)
    }

    async fn purge_expired(
        &self,
        op: &'static str,
        now: UnixMillis,
        limit: usize,
    ) -> PortResult<u64> {
        let hour = sortable(now.0.div_euclid(HOUR)).to_vec();
        let mut span = Span {
            list: ENDS.to_owned(),
            buckets: (Vec::new(), successor(&hour)),
            positions: (Vec::new(), [&hour[..], &[u8::MAX; 8]].concat()),
            is_rising: true,
        };
        let mut purged = 0;
        while purged < limit {
            let wanted = (limit - purged).min(SESSIONS_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let places = entries.entries.iter().map(|entry| entry.place.clone());
            let tried =
                together(places.map(|place| async move { self.purge_one(op, &place, now).await }));
            let tried = tried.await?;
            let (mut over, mut stale) = (Vec::new(), Vec::new());
            for (entry, outcome) in entries.entries.into_iter().zip(tried) {
                span.follow(&entry.place);
                match outcome {
                    Purged::Expired { was_listed } => {
                        purged += usize::from(was_listed);
                        over.push(entry);
                    }
                    Purged::Later => {}
                    Purged::Elsewhere => stale.push(entry),
                }
            }
            self.lists.drop_entries(op, over).await?;
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                break;
            }
        }
        Ok(purged as u64)
    }

    async fn purge_one(
        &self,
        op: &'static str,
        place: &Place,
        now: UnixMillis,
    ) -> PortResult<Purged> {
        let Some(id) = id_at(&place.position) else {
            return Ok(Purged::Elsewhere);
        };
        let values = (&*self.namespace, id);
        let row: Option<SessionRow> = self.engine.first(op, GET, values).await?;
        let Some(row) = row else {
            return Ok(Purged::Elsewhere);
        };
        if row.expires_at > now.0 {
            let is_here = end_place(id, UnixMillis(row.expires_at)) == *place;
            return Ok(match is_here {
                true => Purged::Later,
                false => Purged::Elsewhere,
            });
        }
        let values = (&*self.namespace, id, now.0);
        match self.engine.decide(op, PURGE, values).await? {
            // An ended one is gone already, as far as anybody can see.
            Decided::Applied => Ok(Purged::Expired {
                was_listed: !row.ended,
            }),
            Decided::Refused => Ok(Purged::Later),
            Decided::Unknown(error) => Err(error),
        }
    }
}

/// What became of an entry of those that expire.
enum Purged {
    /// This call removed it.
    Expired { was_listed: bool },
    /// It expires later in this hour, or another call removed it.
    Later,
    /// It is gone, or expires at another hour.
    Elsewhere,
}
