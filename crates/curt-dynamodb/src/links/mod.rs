//! The items of links and of requests. When they are written: [`curt_adapter_kit::wide_column::links`].

pub(crate) mod record;
mod requests;

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::wide_column::links::{
    LinkPut, LinkRows, RELEASED, ReleasedCounts, ScannedLink, Stored, StoredLink,
};
use curt_adapter_kit::wide_column::{Decided, Mark, ReadMode, ScanPart};
use curt_core::{Link, LinkId, LinkState, PortResult, Revision, ShardId};

use self::record::{
    counts_key, edited, key_of, name_of, of_item, put_row, released_of, released_row,
    released_value,
};
use crate::bulk::Scan;
use crate::engine::Engine;
use crate::item::{Item, Key, PARTITION, Table, bytes, number};
use crate::write::{Condition, Write};

pub(crate) struct DynamoDbLinks {
    engine: Arc<Engine>,
}

impl DynamoDbLinks {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

/// Only if the link has this revision.
fn at_revision(write: Write, seen: Revision) -> Write {
    write
        .when_equal("generation", number(seen.generation))
        .when_equal("version", number(seen.version))
}

#[async_trait]
impl LinkRows for DynamoDbLinks {
    async fn get(
        &self,
        op: &'static str,
        id: &LinkId,
        _mode: ReadMode,
    ) -> PortResult<Option<Stored>> {
        let item = self.engine.get(op, &key_of(id)).await?;
        item.map(|item| of_item(op, id, &item)).transpose()
    }

    async fn get_many(&self, op: &'static str, ids: &[LinkId]) -> PortResult<Vec<Option<Stored>>> {
        let keys: Vec<Key> = ids.iter().map(key_of).collect();
        let items = self.engine.get_many(op, &keys).await?;
        let stored = ids.iter().zip(items);
        stored
            .map(|(id, item)| item.map(|item| of_item(op, id, &item)).transpose())
            .collect()
    }

    async fn put(
        &self,
        op: &'static str,
        new: &LinkPut<'_>,
        seen: Option<&Stored>,
    ) -> PortResult<Decided> {
        let write = Write::put(key_of(new.id), put_row(new));
        let write = match seen.map(Stored::last_writers) {
            None => write.when(Condition::Absent),
            Some((change, spend)) => write
                .when(Condition::by_mark("change_mark", change))
                .when(Condition::by_mark("spend_mark", spend)),
        };
        self.engine.decide(op, &write).await
    }

    async fn edit(
        &self,
        op: &'static str,
        before: &StoredLink,
        after: &Link,
        mark: Mark,
    ) -> PortResult<Decided> {
        let write = Write::update(key_of(&after.id), edited(before, after, mark));
        let write = at_revision(write, before.link.revision);
        self.engine.decide(op, &write).await
    }

    async fn spend(
        &self,
        op: &'static str,
        id: &LinkId,
        seen: Revision,
        spent: u64,
        mark: Mark,
    ) -> PortResult<Decided> {
        let next = number(spent.saturating_add(1).cast_signed());
        let changes = vec![("spent", Some(next)), ("spend_mark", Some(bytes(&mark.0)))];
        let write = at_revision(Write::update(key_of(id), changes), seen)
            .when_equal("state", number(LinkState::Active as u8))
            .when_equal("spent", number(spent.cast_signed()));
        self.engine.decide(op, &write).await
    }

    async fn release(
        &self,
        op: &'static str,
        before: &StoredLink,
        released: &ReleasedCounts,
        mark: Mark,
    ) -> PortResult<Decided> {
        let seen = before.link.revision;
        let rest = released_row(seen.generation, released, mark);
        let write = Write::put(key_of(&before.link.id), rest)
            .when_equal("state", number(LinkState::Tombstone as u8));
        self.engine.decide(op, &at_revision(write, seen)).await
    }

    /// Reads the whole table, page by page.
    async fn scan(
        &self,
        op: &'static str,
        after: Option<&str>,
        is_exact: bool,
    ) -> PortResult<ScanPart<ScannedLink>> {
        let scan = Scan {
            table: Table::Links,
            prefix: None,
            attributes: &[PARTITION, "state", "origin", "released"],
            is_exact,
        };
        let part = self.engine.scan(op, scan, after).await?;
        let row = |item: &Item| {
            Ok(ScannedLink {
                name: name_of(op, item)?,
                state: item.small("state")?,
                origin: match item.maybe_number("origin")? {
                    Some(_) => Some(item.small("origin")?),
                    None => None,
                },
                released: released_of(op, item)?,
            })
        };
        let rows: PortResult<_> = part.rows.iter().map(row).collect();
        Ok(ScanPart {
            rows: rows?,
            next: part.next,
        })
    }

    async fn get_released(
        &self,
        op: &'static str,
        shard: ShardId,
    ) -> PortResult<Option<ReleasedCounts>> {
        let item = self.engine.get(op, &counts_key(shard)).await?;
        item.map(|item| released_of(op, &item)).transpose()
    }

    async fn put_released(
        &self,
        op: &'static str,
        shard: ShardId,
        before: Option<&ReleasedCounts>,
        after: &ReleasedCounts,
    ) -> PortResult<Decided> {
        let attributes = vec![
            ("state", Some(number(RELEASED))),
            ("released", Some(released_value(after))),
        ];
        let condition = match before {
            None => Condition::Absent,
            Some(before) => Condition::Equals("released", released_value(before)),
        };
        let write = Write::put(counts_key(shard), attributes).when(condition);
        self.engine.decide(op, &write).await
    }

    async fn ping(&self, op: &'static str) -> PortResult<()> {
        let key = Key::item("ping".to_owned());
        self.engine.get(op, &key).await.map(drop)
    }
}
