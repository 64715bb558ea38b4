//! The items of ordered lists. An entry carries the time of its writing, and is removed if it still has that: one that
//! was added again stays.

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::links::BUSY_LISTS;
use curt_adapter_kit::wide_column::ordered::{
    BucketQuery, Entry, EntryQuery, ListBucket, ListPlace, ListRows,
};
use curt_adapter_kit::wide_column::together;
use curt_core::PortResult;
use data_encoding::HEXLOWER;
use xxhash_rust::xxh3::xxh3_64;

use crate::bulk::Range;
use crate::engine::Engine;
use crate::item::{Item, Key, Table, number};
use crate::write::Write;

/// Partitions that a bucket of a busy list is spread over: one takes 1,000 writes a second. Part of the format.
const BUSY_SHARDS: u64 = 4;
const ADDED: &str = "added";

pub(crate) struct DynamoDbLists {
    engine: Arc<Engine>,
}

impl DynamoDbLists {
    pub(crate) fn rows(engine: &Arc<Engine>) -> Arc<dyn ListRows> {
        let engine = Arc::clone(engine);
        Arc::new(Self { engine })
    }

    async fn entries_of_shard(
        &self,
        op: &'static str,
        query: EntryQuery<'_>,
        shard: u64,
    ) -> PortResult<Vec<Entry>> {
        let range = Range {
            table: Table::Lists,
            partition: entry_partition(query.list, query.bucket, shard),
            low: query.low.to_vec(),
            high: query.high.to_vec(),
            is_rising: query.is_rising,
            // The engine includes both ends.
            limit: query.limit.saturating_add(2),
        };
        let items = self.engine.query(op, range).await?;
        let entry = |item: Item| {
            Ok(Entry {
                place: ListPlace {
                    list: query.list.to_owned(),
                    bucket: query.bucket.to_vec(),
                    position: item.sort()?.to_vec(),
                },
                added: item.number(ADDED)?,
            })
        };
        let entries: PortResult<Vec<Entry>> = items.into_iter().map(entry).collect();
        let mut entries = entries?;
        entries.retain(|entry| {
            let position = &entry.place.position[..];
            position > query.low && position < query.high
        });
        Ok(entries)
    }
}

fn shards_of(list: &str) -> u64 {
    match BUSY_LISTS.contains(&list) {
        true => BUSY_SHARDS,
        false => 1,
    }
}

fn entry_partition(list: &str, bucket: &[u8], shard: u64) -> String {
    format!("entries/{list}/{}/{shard}", HEXLOWER.encode(bucket))
}

fn entry_key(place: &ListPlace) -> Key {
    let shard = xxh3_64(&place.position) % shards_of(&place.list);
    let partition = entry_partition(&place.list, &place.bucket, shard);
    Key::sorted(Table::Lists, partition, &place.position)
}

fn directory(list: &str) -> String {
    format!("buckets/{list}")
}

fn bucket_key(list: &str, bucket: &[u8]) -> Key {
    Key::sorted(Table::Lists, directory(list), bucket)
}

#[async_trait]
impl ListRows for DynamoDbLists {
    async fn add_buckets(
        &self,
        op: &'static str,
        buckets: &[(String, Vec<u8>)],
        added: i64,
    ) -> PortResult<()> {
        let put = |(list, bucket): &(String, Vec<u8>)| {
            Write::put(bucket_key(list, bucket), vec![(ADDED, Some(number(added)))])
        };
        let puts: Vec<Write> = buckets.iter().map(put).collect();
        self.engine.put_many(op, Effect::None, &puts).await
    }

    async fn add_entries(
        &self,
        op: &'static str,
        places: &[ListPlace],
        added: i64,
    ) -> PortResult<()> {
        let put =
            |place: &ListPlace| Write::put(entry_key(place), vec![(ADDED, Some(number(added)))]);
        let puts: Vec<Write> = places.iter().map(put).collect();
        self.engine.put_many(op, Effect::None, &puts).await
    }

    async fn buckets(
        &self,
        op: &'static str,
        query: BucketQuery<'_>,
    ) -> PortResult<Vec<ListBucket>> {
        let range = Range {
            table: Table::Lists,
            partition: directory(query.list),
            low: query.from.to_vec(),
            high: query.before.to_vec(),
            is_rising: query.is_rising,
            limit: query.limit.saturating_add(1),
        };
        let items = self.engine.query(op, range).await?;
        let bucket = |item: &Item| {
            Ok(ListBucket {
                name: item.sort()?.to_vec(),
                added: item.number(ADDED)?,
            })
        };
        let buckets: PortResult<Vec<ListBucket>> = items.iter().map(bucket).collect();
        let mut buckets = buckets?;
        buckets.retain(|bucket| bucket.name != query.before);
        buckets.truncate(query.limit);
        Ok(buckets)
    }

    async fn entries(&self, op: &'static str, query: EntryQuery<'_>) -> PortResult<Vec<Entry>> {
        let shards = 0..shards_of(query.list);
        let shards = shards.map(|shard| self.entries_of_shard(op, query, shard));
        let mut entries: Vec<Entry> = together(shards).await?.into_iter().flatten().collect();
        entries.sort_unstable_by(|a, b| match query.is_rising {
            true => a.place.position.cmp(&b.place.position),
            false => b.place.position.cmp(&a.place.position),
        });
        entries.truncate(query.limit);
        Ok(entries)
    }

    async fn drop_entry(&self, op: &'static str, entry: Entry) -> PortResult<()> {
        let write = Write::delete(entry_key(&entry.place));
        let write = write.when_equal(ADDED, number(entry.added));
        self.engine.write(op, Effect::None, &write).await
    }

    async fn drop_bucket(
        &self,
        op: &'static str,
        list: &str,
        bucket: &ListBucket,
    ) -> PortResult<()> {
        let write = Write::delete(bucket_key(list, &bucket.name));
        let write = write.when_equal(ADDED, number(bucket.added));
        self.engine.write(op, Effect::None, &write).await
    }
}
