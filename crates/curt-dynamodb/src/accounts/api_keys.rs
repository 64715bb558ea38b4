//! API keys: one partition, with an item for the version and one for each key.

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::accounts::{ApiKeyRows, LoadedKeys};
use curt_adapter_kit::wide_column::{Decided, ReadMode};
use curt_core::account::{ApiKeyNumber, Scopes};
use curt_core::ports::ApiKey;
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};

use super::{DynamoDbAccounts, allowance_changes, allowance_of, time};
use crate::bulk::Range;
use crate::engine::TRANSACTION_MAX;
use crate::failure::{BACKEND, corrupt};
use crate::item::{Item, Key, Table, bytes, number, text};
use crate::write::{Condition, Write};

const PARTITION: &str = "api-keys";

fn version_key() -> Key {
    Key::item(PARTITION.to_owned())
}

fn api_key_key(prefix: &str) -> Key {
    Key::sorted(Table::Items, PARTITION.to_owned(), prefix.as_bytes())
}

/// Written far more often than the key.
fn use_key(prefix: &str) -> Key {
    Key::item(format!("api-key-use/{prefix}"))
}

fn key_of(op: &'static str, item: &Item) -> PortResult<ApiKey> {
    let prefix = str::from_utf8(item.sort()?).map_err(|error| corrupt(op, error))?;
    Ok(ApiKey {
        number: ApiKeyNumber(item.small("number")?),
        prefix: prefix.into(),
        secret_hash: item.fixed("secret_hash")?,
        user: OwnerId(item.number("user")?.cast_unsigned()),
        name: item.text("name")?.into(),
        scopes: item.word("scopes", Scopes::from_stored)?,
        allowance: allowance_of(item)?,
        created_at: UnixMillis(item.number("created_at")?),
        expires_at: item.maybe_number("expires_at")?.map(UnixMillis),
        parent: item.maybe_text("parent")?.map(Into::into),
        bucket: ApiKeyNumber(item.small("bucket")?),
        revoked_at: item.maybe_number("revoked_at")?.map(UnixMillis),
        last_used_at: None,
    })
}

fn put_key(key: &ApiKey) -> Write {
    let mut attributes = vec![
        ("number", Some(number(key.number.0))),
        ("secret_hash", Some(bytes(&key.secret_hash))),
        ("user", Some(number(key.user.0.cast_signed()))),
        ("name", Some(text(&key.name))),
        ("scopes", Some(number(key.scopes.stored()))),
        ("created_at", Some(number(key.created_at.0))),
        ("expires_at", time(key.expires_at)),
        ("parent", key.parent.as_deref().map(text)),
        ("bucket", Some(number(key.bucket.0))),
        ("revoked_at", time(key.revoked_at)),
    ];
    attributes.extend(allowance_changes(&key.allowance));
    Write::put(api_key_key(&key.prefix), attributes)
}

#[async_trait]
impl ApiKeyRows for DynamoDbAccounts {
    async fn get_key(&self, op: &'static str, prefix: &str) -> PortResult<Option<ApiKey>> {
        // The item with an empty one is the version's.
        if prefix.is_empty() {
            return Ok(None);
        }
        let item = self.engine.get(op, &api_key_key(prefix)).await?;
        item.map(|item| key_of(op, &item)).transpose()
    }

    async fn get_keys(&self, op: &'static str, _mode: ReadMode) -> PortResult<LoadedKeys> {
        // Before the keys, which are not read at one moment with it: so they are not older.
        let version = self.engine.get(op, &version_key()).await?;
        let version = version.map(|item| item.number("version")).transpose()?;
        let range = Range::all(PARTITION.to_owned());
        let mut keys = Vec::new();
        for item in &self.engine.query(op, range).await? {
            if !item.sort()?.is_empty() {
                keys.push(key_of(op, item)?);
            }
        }
        Ok(LoadedKeys { version, keys })
    }

    /// More keys than fit in a transaction are stored in several, each with a version of its own.
    async fn put_keys(
        &self,
        op: &'static str,
        seen: Option<i64>,
        keys: &[ApiKey],
    ) -> PortResult<Decided> {
        let mut seen = seen;
        for (part, keys) in keys.chunks(TRANSACTION_MAX - 1).enumerate() {
            let next = seen.unwrap_or(0) + 1;
            let condition = match seen {
                None => Condition::Absent,
                Some(seen) => Condition::Equals("version", number(seen)),
            };
            let version = Write::put(version_key(), vec![("version", Some(number(next)))]);
            let mut writes = vec![version.when(condition)];
            writes.extend(keys.iter().map(put_key));
            match self.engine.decide_all(op, &writes).await? {
                Decided::Applied => seen = Some(next),
                Decided::Refused if part > 0 => {
                    let detail = "only some of the API keys were changed: try again";
                    let error = PortError::new(ErrorKind::Timeout, BACKEND, op, detail);
                    return Ok(Decided::Unknown(error));
                }
                other => return Ok(other),
            }
        }
        Ok(Decided::Applied)
    }

    async fn get_uses(
        &self,
        op: &'static str,
        prefixes: &[&str],
    ) -> PortResult<Vec<Option<UnixMillis>>> {
        let keys: Vec<Key> = prefixes.iter().map(|prefix| use_key(prefix)).collect();
        let items = self.engine.get_many(op, &keys).await?;
        let at = |item: Option<Item>| {
            let at = item.map(|item| item.number("used_at")).transpose()?;
            Ok(at.map(UnixMillis))
        };
        items.into_iter().map(at).collect()
    }

    async fn put_use(&self, op: &'static str, prefix: &str, at: UnixMillis) -> PortResult<()> {
        let write = Write::put(use_key(prefix), vec![("used_at", Some(number(at.0)))]);
        let write = write.when(Condition::AbsentOrBelow("used_at", number(at.0)));
        self.engine.write(op, Effect::Unknown, &write).await
    }
}
