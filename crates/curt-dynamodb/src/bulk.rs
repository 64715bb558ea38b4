//! Reads and writes of many items.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::{KeysAndAttributes, PutRequest, WriteRequest};
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::{ScanPart, together};
use curt_core::{ErrorKind, PortError, PortResult};
use data_encoding::HEXLOWER;

use crate::engine::Engine;
use crate::failure::{BACKEND, corrupt, failed};
use crate::item::{Attributes, Item, Key, PARTITION, SORT, Table, bytes, sort_key, text};
use crate::write::Write;

/// Items that one request may write and read.
const PUTS_MAX: usize = 25;
const GETS_MAX: usize = 100;
/// Bytes of items that one request may write, with some room: the engine takes 16 MB.
const PUT_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// Between requests for what the engine has left: it does so when it is busy.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(320);

/// A part of a partition, both ends included.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) table: Table,
    pub(crate) partition: String,
    pub(crate) low: Vec<u8>,
    pub(crate) high: Vec<u8>,
    pub(crate) is_rising: bool,
    pub(crate) limit: usize,
}

impl Range {
    /// A whole partition of the table of items.
    pub(crate) fn all(partition: String) -> Self {
        Self {
            table: Table::Items,
            partition,
            low: Vec::new(),
            high: vec![u8::MAX; 512],
            is_rising: true,
            limit: usize::MAX,
        }
    }
}

/// What to read of a whole table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) table: Table,
    /// Whose partition keys begin so. The others are read, too, and left out.
    pub(crate) prefix: Option<&'a str>,
    pub(crate) attributes: &'a [&'a str],
    /// Otherwise it may miss what was written in the last second, and costs half.
    pub(crate) is_exact: bool,
}

impl<'a> Scan<'a> {
    /// The keys of items.
    pub(crate) fn keys(prefix: &'a str) -> Self {
        Self {
            table: Table::Items,
            prefix: Some(prefix),
            attributes: &[PARTITION, SORT],
            is_exact: true,
        }
    }
}

impl Engine {
    /// Items in the order of their sort keys.
    pub(crate) async fn query(&self, op: &'static str, range: Range) -> PortResult<Vec<Item>> {
        let (low, high) = (sort_key(&range.low), sort_key(&range.high));
        let mut found = Vec::new();
        // The engine refuses a range that ends before it begins.
        if low > high {
            return Ok(found);
        }
        let mut start = None;
        while found.len() < range.limit {
            let left = range.limit - found.len();
            let (client, _permit) = self.client(op).await?;
            let request = client
                .query()
                .table_name(self.table(range.table))
                .consistent_read(true)
                .scan_index_forward(range.is_rising)
                .key_condition_expression("#p = :p AND #s BETWEEN :low AND :high")
                .expression_attribute_names("#p", PARTITION)
                .expression_attribute_names("#s", SORT)
                .expression_attribute_values(":p", text(&range.partition))
                .expression_attribute_values(":low", bytes(&low))
                .expression_attribute_values(":high", bytes(&high))
                .limit(i32::try_from(left).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start);
            let answer = request.send().await;
            let answer = answer.map_err(|error| failed(op, &self.route, Effect::None, error))?;
            let items = answer.items.unwrap_or_default();
            found.extend(items.into_iter().map(|item| Item::new(op, item)));
            start = answer.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Items in the order of `keys`, which are of one table.
    pub(crate) async fn get_many(
        &self,
        op: &'static str,
        keys: &[Key],
    ) -> PortResult<Vec<Option<Item>>> {
        let unique: HashSet<&Key> = keys.iter().collect();
        let unique: Vec<&Key> = unique.into_iter().collect();
        let parts = unique.chunks(GETS_MAX).map(|part| self.get_part(op, part));
        let parts = together(parts.collect::<Vec<_>>()).await?;
        let found: HashMap<Key, Item> = parts.into_iter().flatten().collect();
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn get_part(&self, op: &'static str, keys: &[&Key]) -> PortResult<Vec<(Key, Item)>> {
        let Some(first) = keys.first() else {
            return Ok(Vec::new());
        };
        let (table, name) = (first.table, self.table(first.table));
        let mut wanted: Vec<Attributes> = keys.iter().map(|key| key.to_attributes()).collect();
        let mut found = Vec::new();
        let mut pause = PAUSE_FIRST;
        loop {
            let (client, permit) = self.client(op).await?;
            let part = KeysAndAttributes::builder().set_keys(Some(wanted));
            let part = part.consistent_read(true).build();
            let part = part.map_err(|error| corrupt(op, error))?;
            let request = client.batch_get_item().request_items(&name, part);
            let answer = request.send().await;
            let answer = answer.map_err(|error| failed(op, &self.route, Effect::None, error))?;
            drop(permit);
            let items = answer.responses.unwrap_or_default().remove(&name);
            for item in items.unwrap_or_default() {
                let item = Item::new(op, item);
                let key = Key {
                    table,
                    partition: item.text(PARTITION)?.to_owned(),
                    sort: item.maybe_bytes(SORT)?.map(<[u8]>::to_vec),
                };
                found.push((key, item));
            }
            let left = answer.unprocessed_keys.unwrap_or_default().remove(&name);
            match left.map(|left| left.keys).filter(|keys| !keys.is_empty()) {
                None => return Ok(found),
                Some(left) => wanted = left,
            }
            // The deadline of the call ends it.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Puts items of one table, whatever was there. Called twice: no change.
    pub(crate) async fn put_many(
        &self,
        op: &'static str,
        effect: Effect,
        puts: &[Write],
    ) -> PortResult<()> {
        // The engine refuses two writes of one item in a request.
        let unique: HashMap<&Key, &Write> = puts.iter().map(|put| (&put.key, put)).collect();
        let (mut parts, mut part, mut size) = (Vec::new(), Vec::new(), 0);
        for put in unique.into_values() {
            let item = put.to_item();
            let item_size = size_of_item(&item);
            if part.len() == PUTS_MAX || size + item_size > PUT_BYTES_MAX {
                parts.push(std::mem::take(&mut part));
                size = 0;
            }
            size += item_size;
            part.push(item);
        }
        parts.push(part);
        let Some(table) = puts.first().map(|put| put.key.table) else {
            return Ok(());
        };
        let puts = parts
            .into_iter()
            .map(|part| self.put_part(op, effect, table, part));
        together(puts.collect::<Vec<_>>()).await.map(drop)
    }

    async fn put_part(
        &self,
        op: &'static str,
        effect: Effect,
        table: Table,
        items: Vec<Attributes>,
    ) -> PortResult<()> {
        let name = self.table(table);
        let put = |item| {
            let put = PutRequest::builder().set_item(Some(item)).build();
            put.map(|put| WriteRequest::builder().put_request(put).build())
        };
        let left: Result<Vec<WriteRequest>, _> = items.into_iter().map(put).collect();
        let mut left = left.map_err(|error| corrupt(op, error))?;
        let mut pause = PAUSE_FIRST;
        loop {
            let (client, permit) = self.client(op).await?;
            let request = client.batch_write_item().request_items(&name, left);
            let answer = request.send().await;
            let answer = answer.map_err(|error| failed(op, &self.route, effect, error))?;
            drop(permit);
            left = answer
                .unprocessed_items
                .and_then(|mut items| items.remove(&name))
                .unwrap_or_default();
            if left.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// A page of a whole table. `after`: the position that the page before ended with.
    pub(crate) async fn scan(
        &self,
        op: &'static str,
        scan: Scan<'_>,
        after: Option<&str>,
    ) -> PortResult<ScanPart<Item>> {
        let after = after.map(|text| read_position(scan.table, text).ok_or_else(|| misplaced(op)));
        let after = after.transpose()?;
        let (client, _permit) = self.client(op).await?;
        let names = scan.attributes.iter().enumerate();
        let names = names.map(|(number, name)| (format!("#n{number}"), (*name).to_owned()));
        let names: HashMap<String, String> = names.collect();
        let places: Vec<&str> = names.keys().map(String::as_str).collect();
        let mut request = client
            .scan()
            .table_name(self.table(scan.table))
            .consistent_read(scan.is_exact)
            .projection_expression(places.join(", "))
            .set_expression_attribute_names(Some(names))
            .set_exclusive_start_key(after.map(|key| key.to_attributes()));
        if let Some(prefix) = scan.prefix {
            request = request
                .filter_expression("begins_with(#p, :prefix)")
                .expression_attribute_names("#p", PARTITION)
                .expression_attribute_values(":prefix", text(prefix));
        }
        let answer = request.send().await;
        let answer = answer.map_err(|error| failed(op, &self.route, Effect::None, error))?;
        let last = answer.last_evaluated_key.map(|key| Item::new(op, key));
        let next = match last {
            Some(last) => Some(position_of(&last)?),
            None => None,
        };
        let items = answer.items.unwrap_or_default().into_iter();
        let rows = items.map(|item| Item::new(op, item)).collect();
        Ok(ScanPart { rows, next })
    }
}

/// Where a scan stopped: the sort key, in hexadecimal, and the partition key.
fn position_of(last: &Item) -> PortResult<Box<str>> {
    let sort = last.maybe_bytes(SORT)?.unwrap_or_default();
    let partition = last.text(PARTITION)?;
    Ok(format!("{}:{partition}", HEXLOWER.encode(sort)).into())
}

fn read_position(table: Table, position: &str) -> Option<Key> {
    let (sort, partition) = position.split_once(':')?;
    let sort = HEXLOWER.decode(sort.as_bytes()).ok()?;
    Some(Key {
        table,
        partition: partition.to_owned(),
        sort: (!sort.is_empty()).then_some(sort),
    })
}

fn misplaced(op: &'static str) -> PortError {
    let detail = "the position is not one of this database";
    PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
}

/// Roughly: what its longest values take.
fn size_of_item(item: &Attributes) -> usize {
    use aws_sdk_dynamodb::types::AttributeValue;
    let size = |value: &AttributeValue| match value {
        AttributeValue::B(blob) => blob.as_ref().len(),
        AttributeValue::S(text) => text.len(),
        _ => 64,
    };
    item.values().map(size).sum()
}
