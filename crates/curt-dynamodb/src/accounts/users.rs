use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::{PendingRemoval, StoredUser, UserRows};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode};
use curt_core::account::{Role, User};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::{DynamoDbAccounts, allowance_changes, allowance_of, time};
use crate::item::{Item, Key, bytes, flag, number, text};
use crate::write::{Change, Condition, Write};

fn user_key(id: OwnerId) -> Key {
    Key::item(format!("user/{id}"))
}

/// Who has which email, or is about to: the user's own item decides.
fn email_key(email: &str) -> Key {
    Key::item(format!("email/{email}"))
}

/// The administrator who is being removed: one at a time.
fn removal_key() -> Key {
    Key::item("removal".to_owned())
}

fn owner(id: i64) -> OwnerId {
    OwnerId(id.cast_unsigned())
}

fn user_of(id: OwnerId, item: &Item) -> PortResult<User> {
    Ok(User {
        id,
        first_name: item.text("first_name")?.into(),
        middle_name: item.maybe_text("middle_name")?.map(Into::into),
        last_name: item.text("last_name")?.into(),
        email: item.text("email")?.into(),
        password_hash: item.maybe_text("password_hash")?.map(Into::into),
        role: item.word("role", Role::from_stored)?,
        disabled_at: item.maybe_number("disabled_at")?.map(UnixMillis),
        allowance: allowance_of(item)?,
        created_at: UnixMillis(item.number("created_at")?),
        updated_at: UnixMillis(item.number("updated_at")?),
    })
}

fn user_attributes(user: &User, mark: Mark) -> Vec<Change> {
    let mut attributes = vec![
        ("first_name", Some(text(&user.first_name))),
        ("middle_name", user.middle_name.as_deref().map(text)),
        ("last_name", Some(text(&user.last_name))),
        ("email", Some(text(&user.email))),
        ("password_hash", user.password_hash.as_deref().map(text)),
        ("role", Some(number(user.role as u8))),
        ("disabled_at", time(user.disabled_at)),
        ("created_at", Some(number(user.created_at.0))),
        ("updated_at", Some(number(user.updated_at.0))),
        ("change_mark", Some(bytes(&mark.0))),
        ("removed", Some(flag(false))),
    ];
    attributes.extend(allowance_changes(&user.allowance));
    attributes
}

fn claim(email: &str, user: OwnerId, at: UnixMillis) -> Write {
    let attributes = vec![
        ("user", Some(number(user.0.cast_signed()))),
        ("claimed_at", Some(number(at.0))),
    ];
    Write::put(email_key(email), attributes)
}

#[async_trait]
impl UserRows for DynamoDbAccounts {
    async fn get_user(
        &self,
        op: &'static str,
        id: OwnerId,
        _mode: ReadMode,
    ) -> PortResult<Option<StoredUser>> {
        let Some(item) = self.engine.get(op, &user_key(id)).await? else {
            return Ok(None);
        };
        let user = match item.flag("removed") {
            true => None,
            false => Some(user_of(id, &item)?),
        };
        let changed_by = item.maybe_fixed("change_mark")?.map(Mark);
        Ok(Some(StoredUser { user, changed_by }))
    }

    async fn insert_user(
        &self,
        op: &'static str,
        user: &User,
        mark: Mark,
        is_over_removed: bool,
    ) -> PortResult<Decided> {
        let condition = match is_over_removed {
            false => Condition::Absent,
            true => Condition::Equals("removed", flag(true)),
        };
        let write = Write::put(user_key(user.id), user_attributes(user, mark));
        self.engine.decide(op, &write.when(condition)).await
    }

    async fn update_user(
        &self,
        op: &'static str,
        user: &User,
        seen: UnixMillis,
        mark: Mark,
    ) -> PortResult<Decided> {
        let write = Write::put(user_key(user.id), user_attributes(user, mark))
            .when_equal("updated_at", number(seen.0))
            .when_equal("removed", flag(false));
        self.engine.decide(op, &write).await
    }

    async fn remove_user(&self, op: &'static str, id: OwnerId, mark: Mark) -> PortResult<Decided> {
        let rest = vec![
            ("removed", Some(flag(true))),
            ("change_mark", Some(bytes(&mark.0))),
        ];
        let write = Write::put(user_key(id), rest).when_equal("removed", flag(false));
        self.engine.decide(op, &write).await
    }

    async fn get_email(
        &self,
        op: &'static str,
        email: &str,
        _mode: ReadMode,
    ) -> PortResult<Option<(OwnerId, UnixMillis)>> {
        let Some(item) = self.engine.get(op, &email_key(email)).await? else {
            return Ok(None);
        };
        let claimed_at = UnixMillis(item.number("claimed_at")?);
        Ok(Some((owner(item.number("user")?), claimed_at)))
    }

    async fn claim_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
        at: UnixMillis,
    ) -> PortResult<Decided> {
        let write = claim(email, user, at).when(Condition::Absent);
        self.engine.decide(op, &write).await
    }

    async fn take_over_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
        at: UnixMillis,
        seen: (OwnerId, UnixMillis),
    ) -> PortResult<Decided> {
        let write = claim(email, user, at)
            .when_equal("user", number(seen.0.0.cast_signed()))
            .when_equal("claimed_at", number(seen.1.0));
        self.engine.decide(op, &write).await
    }

    async fn free_email(
        &self,
        op: &'static str,
        email: &str,
        user: OwnerId,
    ) -> PortResult<Decided> {
        let write = Write::delete(email_key(email));
        let write = write.when_equal("user", number(user.0.cast_signed()));
        self.engine.decide(op, &write).await
    }

    async fn get_removal(&self, op: &'static str) -> PortResult<Option<PendingRemoval>> {
        let Some(item) = self.engine.get(op, &removal_key()).await? else {
            return Ok(None);
        };
        Ok(Some(PendingRemoval {
            version: item.number("version")?,
            pending: item.maybe_number("pending")?.map(owner),
        }))
    }

    async fn set_removal(
        &self,
        op: &'static str,
        seen: Option<i64>,
        pending: Option<OwnerId>,
    ) -> PortResult<Decided> {
        let attributes = vec![
            ("version", Some(number(seen.unwrap_or(0) + 1))),
            ("pending", pending.map(|id| number(id.0.cast_signed()))),
        ];
        let condition = match seen {
            None => Condition::Absent,
            Some(version) => Condition::Equals("version", number(version)),
        };
        let write = Write::put(removal_key(), attributes).when(condition);
        self.engine.decide(op, &write).await
    }
}
