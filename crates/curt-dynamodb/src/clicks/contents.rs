//! Values that are written once: a partition each, with an item about it and items for its parts. An item takes 400 kB.

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::clicks::{Content, ContentRows};
use curt_adapter_kit::wide_column::together;
use curt_core::PortResult;

use super::DynamoDbClicks;
use crate::bulk::Range;
use crate::failure::corrupt;
use crate::item::{Item, Key, Table, bytes, number};
use crate::write::Write;

pub(super) const PART_BYTES: usize = 350_000;

fn partition(id: i64) -> String {
    format!("click-content/{id}")
}

fn part_key(partition: &str, part: u32) -> Key {
    let sort = part.to_be_bytes();
    Key::sorted(Table::Items, partition.to_owned(), &sort)
}

/// The items of a value's parts.
pub(super) fn parts_of(partition: &str, value: &[u8]) -> Vec<Write> {
    let parts = (0..).zip(value.chunks(PART_BYTES));
    let put = |(part, value)| {
        let key = part_key(partition, part);
        Write::put(key, vec![("content", Some(bytes(value)))])
    };
    parts.map(put).collect()
}

impl DynamoDbClicks {
    /// The parts of a value, put together.
    pub(super) async fn get_parts(
        &self,
        op: &'static str,
        partition: String,
    ) -> PortResult<Vec<u8>> {
        let range = Range {
            low: vec![0],
            ..Range::all(partition)
        };
        let items = self.engine.query(op, range).await?;
        let mut value = Vec::new();
        for item in &items {
            value.extend_from_slice(item.bytes("content")?);
        }
        Ok(value)
    }

    pub(super) async fn delete_parts(
        &self,
        op: &'static str,
        partition: &str,
        count: u32,
    ) -> PortResult<()> {
        let delete = |part: u32| async move {
            let write = Write::delete(part_key(partition, part));
            self.engine.write(op, Effect::None, &write).await
        };
        together((0..count).map(delete)).await.map(drop)
    }

    async fn get_header(&self, op: &'static str, id: i64) -> PortResult<Option<Item>> {
        self.engine.get(op, &Key::item(partition(id))).await
    }
}

/// How many parts a value has.
pub(super) fn count_parts(value: &[u8]) -> u32 {
    u32::try_from(value.len().div_ceil(PART_BYTES)).unwrap_or(u32::MAX)
}

#[async_trait]
impl ContentRows for DynamoDbClicks {
    async fn put_contents(&self, op: &'static str, contents: Vec<Content<'_>>) -> PortResult<()> {
        let mut puts = Vec::new();
        for one in &contents {
            let (partition, content) = (partition(one.id), one.content.unwrap_or_default());
            puts.extend(parts_of(&partition, content));
            let parts = one.content.map(count_parts);
            let about = vec![
                ("day", one.day.map(number)),
                ("subjects", one.subjects.map(bytes)),
                ("parts", parts.map(number)),
                ("size", one.content.map(|content| number(size(content)))),
            ];
            puts.push(Write::put(Key::item(partition), about));
        }
        // Nothing finds them yet.
        self.engine.put_many(op, Effect::None, &puts).await
    }

    async fn get_content(&self, op: &'static str, id: i64) -> PortResult<Option<Vec<u8>>> {
        let Some(about) = self.get_header(op, id).await? else {
            return Ok(None);
        };
        let Some(expected) = about.maybe_number("size")? else {
            return Ok(None);
        };
        let content = self.get_parts(op, partition(id)).await?;
        match size(&content) == expected {
            true => Ok(Some(content)),
            // It is being deleted, or was damaged.
            false if self.get_header(op, id).await?.is_none() => Ok(None),
            false => Err(corrupt(op, format!("content {id} lacks a part"))),
        }
    }

    async fn get_subjects(&self, op: &'static str, id: i64) -> PortResult<Option<Vec<u8>>> {
        let Some(about) = self.get_header(op, id).await? else {
            return Ok(None);
        };
        Ok(about.maybe_bytes("subjects")?.map(<[u8]>::to_vec))
    }

    async fn get_day(&self, op: &'static str, run: i64) -> PortResult<Option<i32>> {
        let Some(about) = self.get_header(op, run).await? else {
            return Ok(None);
        };
        match about.maybe_number("day")? {
            Some(_) => about.small("day").map(Some),
            None => Ok(None),
        }
    }

    async fn delete_content(&self, op: &'static str, id: i64) -> PortResult<()> {
        let Some(about) = self.get_header(op, id).await? else {
            return Ok(());
        };
        // First: what has no item about it is not there.
        let write = Write::delete(Key::item(partition(id)));
        self.engine.write(op, Effect::None, &write).await?;
        match about.maybe_number("parts")? {
            Some(_) => {
                let parts = about.small("parts")?;
                self.delete_parts(op, &partition(id), parts).await
            }
            None => Ok(()),
        }
    }
}

fn size(value: &[u8]) -> i64 {
    i64::try_from(value.len()).unwrap_or(i64::MAX)
}
