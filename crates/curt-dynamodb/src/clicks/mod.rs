//! The items of clicks. When they are written: [`curt_adapter_kit::wide_column::clicks`].

mod blocks;
mod contents;
mod offsets;
mod runs;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::clicks::{DamageRows, DamagedKind, SaltRows};
use curt_adapter_kit::wide_column::{Decided, ReadMode};
use curt_core::ports::Salt;
use curt_core::{Clock, Day, PortResult, SystemClock, UnixMillis};

use crate::bulk::Range;
use crate::engine::Engine;
use crate::failure::corrupt;
use crate::item::{EXPIRES, Item, Key, Table, bytes, expiry, flag, number};
use crate::write::{Change, Condition, Write};

/// How long it is known of something that it was removed: longer than any window is left unfinished.
const GONE_KEPT: Duration = Duration::from_secs(365 * 24 * 3_600);

pub(crate) struct DynamoDbClicks {
    engine: Arc<Engine>,
}

impl DynamoDbClicks {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

/// All that is left of something that was removed.
fn gone() -> Vec<Change> {
    let until = SystemClock.now().plus(GONE_KEPT);
    vec![("gone", Some(flag(true))), (EXPIRES, Some(expiry(until)))]
}

fn salt_key(day: Day) -> Key {
    Key::item(format!("click-salt/{}", day.number()))
}

fn damage_partition(kind: DamagedKind) -> String {
    format!("click-damage/{}", kind as u8)
}

#[async_trait]
impl SaltRows for DynamoDbClicks {
    async fn get_salt(
        &self,
        op: &'static str,
        day: Day,
        _mode: ReadMode,
    ) -> PortResult<Option<Salt>> {
        let item = self.engine.get(op, &salt_key(day)).await?;
        item.map(|item| item.fixed("salt")).transpose()
    }

    async fn insert_salt(&self, op: &'static str, day: Day, salt: &Salt) -> PortResult<Decided> {
        let write = Write::put(salt_key(day), vec![("salt", Some(bytes(salt)))]);
        self.engine.decide(op, &write.when(Condition::Absent)).await
    }

    async fn delete_salt(&self, op: &'static str, day: Day) -> PortResult<Decided> {
        self.engine.decide(op, &Write::delete(salt_key(day))).await
    }
}

#[async_trait]
impl DamageRows for DynamoDbClicks {
    async fn get_damage(
        &self,
        op: &'static str,
        kind: DamagedKind,
    ) -> PortResult<Vec<(i64, UnixMillis)>> {
        let range = Range::all(damage_partition(kind));
        let damaged = |item: &Item| {
            let id = item.sort()?.try_into().map(i64::from_be_bytes);
            let id = id.map_err(|error| corrupt(op, error))?;
            Ok((id, UnixMillis(item.number("found_at")?)))
        };
        let items = self.engine.query(op, range).await?;
        items.iter().map(damaged).collect()
    }

    async fn put_damage(
        &self,
        op: &'static str,
        kind: DamagedKind,
        id: i64,
        at: UnixMillis,
    ) -> PortResult<()> {
        let key = Key::sorted(Table::Items, damage_partition(kind), &id.to_be_bytes());
        let write = Write::put(key, vec![("found_at", Some(number(at.0)))]);
        self.engine.write(op, Effect::Unknown, &write).await
    }
}
