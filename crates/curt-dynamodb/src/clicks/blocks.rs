//! The catalogue of blocks of single clicks: one partition, with an item for each block and one for what is known of all.

use async_trait::async_trait;
use curt_adapter_kit::click_blocks::BlockPlace;
use curt_adapter_kit::wide_column::clicks::{BlockRow, ClickBlockRows, StoredBlock};
use curt_adapter_kit::wide_column::ordered::{of_sortable, sortable};
use curt_adapter_kit::wide_column::{Decided, pause};
use curt_core::{PortResult, UnixMillis};

use super::{DynamoDbClicks, gone};
use crate::bulk::Range;
use crate::failure::corrupt;
use crate::item::{Item, Key, Table, flag, number};
use crate::write::{Condition, Write};

const PARTITION: &str = "click-blocks";

/// How often blocks were replaced, and what all of them take.
fn summary_key() -> Key {
    Key::item(PARTITION.to_owned())
}

fn sort_of(place: BlockPlace) -> Vec<u8> {
    [sortable(place.last_at.0), place.id.to_be_bytes()].concat()
}

fn block_key(row: &BlockRow) -> Key {
    let place = BlockPlace {
        last_at: row.last_at,
        id: row.id,
    };
    Key::sorted(Table::Items, PARTITION.to_owned(), &sort_of(place))
}

fn stored_of(op: &'static str, item: &Item) -> PortResult<StoredBlock> {
    let sort = item.sort()?.split_first_chunk::<8>();
    let place = sort.and_then(|(last_at, id)| Some((last_at, id.first_chunk::<8>()?)));
    let (last_at, id) = place.ok_or_else(|| corrupt(op, "the place of a block"))?;
    let last_at = UnixMillis(of_sortable(*last_at));
    let is_gone = item.flag("gone");
    let known = |name| match is_gone {
        true => Ok(0),
        false => item.number(name),
    };
    Ok(StoredBlock {
        is_gone,
        row: BlockRow {
            id: i64::from_be_bytes(*id),
            first_at: UnixMillis(item.maybe_number("first_at")?.unwrap_or(last_at.0)),
            last_at,
            clicks: known("clicks")?,
            bytes: known("bytes")?,
        },
    })
}

fn enter(row: &BlockRow) -> Write {
    let attributes = vec![
        ("first_at", Some(number(row.first_at.0))),
        ("clicks", Some(number(row.clicks))),
        ("bytes", Some(number(row.bytes))),
        ("gone", Some(flag(false))),
    ];
    Write::put(block_key(row), attributes).when(Condition::Absent)
}

impl DynamoDbClicks {
    async fn summary(&self, op: &'static str, name: &'static str) -> PortResult<i64> {
        let item = self.engine.get(op, &summary_key()).await?;
        let value = item.map(|item| item.maybe_number(name)).transpose()?;
        Ok(value.flatten().unwrap_or(0))
    }
}

#[async_trait]
impl ClickBlockRows for DynamoDbClicks {
    /// Items are not read at one moment: again until none was replaced meanwhile.
    async fn list_rows(
        &self,
        op: &'static str,
        after: BlockPlace,
        from: UnixMillis,
        limit: usize,
    ) -> PortResult<(i64, Vec<StoredBlock>)> {
        let range = Range {
            table: Table::Items,
            partition: PARTITION.to_owned(),
            low: sortable(from.0).to_vec(),
            high: sort_of(after),
            is_rising: false,
            // The engine includes the end.
            limit: limit.saturating_add(1),
        };
        let mut moves = self.summary(op, "moves").await?;
        loop {
            let items = self.engine.query(op, range.clone()).await?;
            let now = self.summary(op, "moves").await?;
            if now != moves {
                moves = now;
                pause().await;
                continue;
            }
            let rows = items.iter().map(|item| stored_of(op, item));
            let rows: PortResult<Vec<StoredBlock>> = rows.collect();
            let mut rows = rows?;
            rows.retain(|stored| (stored.row.last_at, stored.row.id) != (after.last_at, after.id));
            rows.truncate(limit);
            return Ok((moves, rows));
        }
    }

    async fn get_row(
        &self,
        op: &'static str,
        place: BlockPlace,
    ) -> PortResult<Option<StoredBlock>> {
        let key = Key::sorted(Table::Items, PARTITION.to_owned(), &sort_of(place));
        let item = self.engine.get(op, &key).await?;
        item.map(|item| stored_of(op, &item)).transpose()
    }

    async fn sum_block_bytes(&self, op: &'static str) -> PortResult<u64> {
        let bytes = self.summary(op, "bytes").await?;
        Ok(bytes.max(0).cast_unsigned())
    }

    async fn insert_block(&self, op: &'static str, block: &BlockRow) -> PortResult<Decided> {
        let summary = Write::update(summary_key(), Vec::new()).add("bytes", block.bytes);
        self.engine.decide_all(op, &[summary, enter(block)]).await
    }

    async fn replace_blocks(
        &self,
        op: &'static str,
        moves: i64,
        old: &[BlockRow],
        new: &[BlockRow],
    ) -> PortResult<Decided> {
        let sum = |rows: &[BlockRow]| rows.iter().map(|row| row.bytes).sum::<i64>();
        let changes = vec![("moves", Some(number(moves + 1)))];
        let summary = Write::update(summary_key(), changes).add("bytes", sum(new) - sum(old));
        let condition = match moves {
            0 => Condition::Without("moves"),
            _ => Condition::Equals("moves", number(moves)),
        };
        let mut writes = vec![summary.when(condition)];
        writes.extend(old.iter().map(|row| {
            let remove = Write::put(block_key(row), gone());
            remove.when_equal("gone", flag(false))
        }));
        writes.extend(new.iter().map(enter));
        self.engine.decide_all(op, &writes).await
    }
}
