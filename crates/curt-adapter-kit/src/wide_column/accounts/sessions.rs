use async_trait::async_trait;
use curt_core::ports::{Session, Sessions};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::WideAccounts;
use crate::wide_column::ordered::{ListPlace, Span, sortable, successor};
use crate::wide_column::{Decided, Mark, ReadMode, pause, together};

/// Sessions by the hour in which they expire.
const ENDS: &str = "sessions/ends";
const HOUR: i64 = 3_600_000;
const SESSIONS_AT_ONCE: usize = 200;

/// Sessions as an engine keeps them.
#[async_trait]
pub trait SessionRows: Send + Sync {
    async fn get_session(
        &self,
        op: &'static str,
        id: &str,
        mode: ReadMode,
    ) -> PortResult<Option<StoredSession>>;

    /// Stores a session, if there is none with its id.
    async fn insert_session(
        &self,
        op: &'static str,
        session: &Session,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Ends a session of the user, if it was not.
    async fn end_session(
        &self,
        op: &'static str,
        user: OwnerId,
        id: &str,
        mark: Mark,
    ) -> PortResult<Decided>;

    /// Stores a use, unless the session has ended or was used later.
    async fn touch_session(
        &self,
        op: &'static str,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<Decided>;

    /// Deletes a session that has expired: it lets nobody in, even if it came back.
    async fn purge_session(
        &self,
        op: &'static str,
        id: &str,
        now: UnixMillis,
    ) -> PortResult<Decided>;
}

/// A session as a row says.
#[derive(Clone, Debug)]
pub struct StoredSession {
    pub session: Session,
    pub is_ended: bool,
    /// The call that began or ended it.
    pub changed_by: Option<Mark>,
}

/// In the list of its user, in the order of its age.
fn user_place(session: &Session) -> ListPlace {
    ListPlace {
        list: user_list(session.user),
        bucket: vec![0],
        position: [&sortable(session.created_at.0)[..], session.id.as_bytes()].concat(),
    }
}

fn user_list(user: OwnerId) -> String {
    format!("sessions/user/{user}")
}

/// In the list of those that expire. An hour does for many touches.
fn end_place(id: &str, expires_at: UnixMillis) -> ListPlace {
    let hour = sortable(expires_at.0.div_euclid(HOUR));
    ListPlace {
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
impl Sessions for WideAccounts {
    async fn add_session(&self, session: &Session) -> PortResult<bool> {
        const OP: &str = "add a session";
        self.deadlines
            .change(OP, self.try_add_session(OP, session))
            .await
    }

    async fn session(&self, id: &str) -> PortResult<Option<Session>> {
        const OP: &str = "look up a session";
        let found = self.find_session(OP, id);
        self.deadlines.look_up(OP, found).await
    }

    async fn sessions(&self, user: OwnerId, now: UnixMillis) -> PortResult<Vec<Session>> {
        const OP: &str = "list sessions";
        let mut found = self.deadlines.list(OP, self.sessions_of(OP, user)).await?;
        found.retain(|session| session.expires_at > now);
        Ok(found)
    }

    async fn end_session(&self, user: OwnerId, id: &str) -> PortResult<bool> {
        const OP: &str = "end a session";
        self.deadlines.change(OP, self.try_end(OP, user, id)).await
    }

    async fn end_sessions(&self, user: OwnerId, but: Option<&str>) -> PortResult<u64> {
        const OP: &str = "end sessions";
        self.deadlines
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
            let touched = self.rows.touch_session(OP, id, used_at, expires_at);
            touched.await?.into_result().map(drop)
        };
        self.deadlines.change(OP, touch).await
    }

    async fn purge_sessions(&self, now: UnixMillis, limit: usize) -> PortResult<u64> {
        const OP: &str = "purge sessions";
        self.deadlines
            .change_much(OP, self.purge_expired(OP, now, limit))
            .await
    }
}

impl WideAccounts {
    async fn find_session(&self, op: &'static str, id: &str) -> PortResult<Option<Session>> {
        let row = self
            .rows
            .get_session(op, id, ReadMode::Acknowledged)
            .await?;
        let row = row.filter(|row| !row.is_ended);
        Ok(row.map(|row| row.session))
    }

    async fn try_add_session(&self, op: &'static str, session: &Session) -> PortResult<bool> {
        let places = [
            user_place(session),
            end_place(&session.id, session.expires_at),
        ];
        self.lists.add(op, places).await?;
        let mark = Mark::random();
        loop {
            match self.rows.insert_session(op, session, mark).await? {
                Decided::Applied => return Ok(true),
                Decided::Refused | Decided::Unknown(_) => {}
            }
            let row = self.rows.get_session(op, &session.id, ReadMode::Decided);
            if let Some(row) = row.await? {
                return Ok(row.changed_by == Some(mark));
            }
            pause().await;
        }
    }

    /// Those that were not ended, expired ones too, newest first.
    async fn sessions_of(&self, op: &'static str, user: OwnerId) -> PortResult<Vec<Session>> {
        let mut span = Span::all(&user_list(user), false);
        let mut sessions = Vec::new();
        loop {
            let entries = self.lists.read(op, &span, SESSIONS_AT_ONCE).await?;
            let places = entries.entries.iter().map(|entry| entry.place.clone());
            let found = together(places.map(|place| async move {
                match id_at(&place.position) {
                    Some(id) => self.find_session(op, id).await,
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
        let mark = Mark::random();
        match self.rows.end_session(op, user, id, mark).await? {
            Decided::Applied => Ok(true),
            Decided::Refused => Ok(false),
            Decided::Unknown(error) => {
                match self.rows.get_session(op, id, ReadMode::Decided).await {
                    Ok(Some(row)) if row.is_ended => Ok(row.changed_by == Some(mark)),
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
        place: &ListPlace,
        now: UnixMillis,
    ) -> PortResult<Purged> {
        let Some(id) = id_at(&place.position) else {
            return Ok(Purged::Elsewhere);
        };
        let row = self.rows.get_session(op, id, ReadMode::Acknowledged);
        let Some(row) = row.await? else {
            return Ok(Purged::Elsewhere);
        };
        if row.session.expires_at > now {
            let is_here = end_place(id, row.session.expires_at) == *place;
            return Ok(match is_here {
                true => Purged::Later,
                false => Purged::Elsewhere,
            });
        }
        let purged = self.rows.purge_session(op, id, now).await?;
        Ok(match purged.into_result()? {
            // An ended one is gone already, as far as anybody can see.
            true => Purged::Expired {
                was_listed: !row.is_ended,
            },
            false => Purged::Later,
        })
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
