use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{SessionRows, StoredSession};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode};
use curt_core::ports::Session;
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::DynamoDbAccounts;
use crate::item::{EXPIRES, Key, bytes, expiry, flag, number, text};
use crate::write::{Condition, Write};

fn session_key(id: &str) -> Key {
    Key::item(format!("session/{id}"))
}

#[async_trait]
impl SessionRows for DynamoDbAccounts {
    async fn get_session(
        &self,
        op: &'static str,
        id: &str,
        _mode: ReadMode,
    ) -> PortResult<Option<StoredSession>> {
        let Some(item) = self.engine.get(op, &session_key(id)).await? else {
            return Ok(None);
        };
        let session = Session {
            id: id.into(),
            secret_hash: item.fixed("secret_hash")?,
            user: OwnerId(item.number("user")?.cast_unsigned()),
            created_at: UnixMillis(item.number("created_at")?),
            used_at: UnixMillis(item.number("used_at")?),
            expires_at: UnixMillis(item.number("expires_at")?),
            agent: item.text("agent")?.into(),
        };
        Ok(Some(StoredSession {
            session,
            is_ended: item.flag("ended"),
            changed_by: item.maybe_fixed("change_mark")?.map(Mark),
        }))
    }

    async fn insert_session(
        &self,
        op: &'static str,
        session: &Session,
        mark: Mark,
    ) -> PortResult<Decided> {
        let attributes = vec![
            ("secret_hash", Some(bytes(&session.secret_hash))),
            ("user", Some(number(session.user.0.cast_signed()))),
            ("created_at", Some(number(session.created_at.0))),
            ("used_at", Some(number(session.used_at.0))),
            ("expires_at", Some(number(session.expires_at.0))),
            ("agent", Some(text(&session.agent))),
            ("ended", Some(flag(false))),
            ("change_mark", Some(bytes(&mark.0))),
            (EXPIRES, Some(expiry(session.expires_at))),
        ];
        let write = Write::put(session_key(&session.id), attributes).when(Condition::Absent);
        self.engine.decide(op, &write).await
    }

    async fn end_session(
        &self,
        op: &'static str,
        user: OwnerId,
        id: &str,
        mark: Mark,
    ) -> PortResult<Decided> {
        let changes = vec![
            ("ended", Some(flag(true))),
            ("change_mark", Some(bytes(&mark.0))),
        ];
        let write = Write::update(session_key(id), changes)
            .when_equal("user", number(user.0.cast_signed()))
            .when_equal("ended", flag(false));
        self.engine.decide(op, &write).await
    }

    async fn touch_session(
        &self,
        op: &'static str,
        id: &str,
        used_at: UnixMillis,
        expires_at: UnixMillis,
    ) -> PortResult<Decided> {
        let changes = vec![
            ("used_at", Some(number(used_at.0))),
            ("expires_at", Some(number(expires_at.0))),
            (EXPIRES, Some(expiry(expires_at))),
        ];
        let write = Write::update(session_key(id), changes)
            .when_equal("ended", flag(false))
            .when(Condition::AtMost("used_at", number(used_at.0)));
        self.engine.decide(op, &write).await
    }

    async fn purge_session(
        &self,
        op: &'static str,
        id: &str,
        now: UnixMillis,
    ) -> PortResult<Decided> {
        let write = Write::delete(session_key(id));
        let write = write.when(Condition::AtMost("expires_at", number(now.0)));
        self.engine.decide(op, &write).await
    }
}
