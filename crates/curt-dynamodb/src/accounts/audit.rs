use async_trait::async_trait;
use curt_adapter_kit::wide_column::accounts::AuditRows;
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode};
use curt_core::ports::AuditEntry;
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::DynamoDbAccounts;
use crate::item::{Key, bytes, number, text};
use crate::write::{Condition, Write};

fn action_key(number: i64) -> Key {
    Key::item(format!("audit/{number}"))
}

#[async_trait]
impl AuditRows for DynamoDbAccounts {
    async fn get_action(
        &self,
        op: &'static str,
        number: i64,
        _mode: ReadMode,
    ) -> PortResult<Option<(AuditEntry, Mark)>> {
        let Some(item) = self.engine.get(op, &action_key(number)).await? else {
            return Ok(None);
        };
        let actor = item.maybe_number("actor")?;
        let entry = AuditEntry {
            at: UnixMillis(item.number("at")?),
            actor: actor.map(|actor| OwnerId(actor.cast_unsigned())),
            action: item.text("action")?.into(),
            subject: item.text("subject")?.into(),
            address: item.maybe_text("address")?.map(Into::into),
        };
        Ok(Some((entry, Mark(item.fixed("mark")?))))
    }

    async fn insert_action(
        &self,
        op: &'static str,
        number_of_action: i64,
        entry: &AuditEntry,
        mark: Mark,
    ) -> PortResult<Decided> {
        let actor = entry.actor.map(|actor| number(actor.0.cast_signed()));
        let attributes = vec![
            ("at", Some(number(entry.at.0))),
            ("actor", actor),
            ("action", Some(text(&entry.action))),
            ("subject", Some(text(&entry.subject))),
            ("address", entry.address.as_deref().map(text)),
            ("mark", Some(bytes(&mark.0))),
        ];
        let write = Write::put(action_key(number_of_action), attributes);
        self.engine.decide(op, &write.when(Condition::Absent)).await
    }
}
