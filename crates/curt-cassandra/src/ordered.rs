//! The rows of ordered lists. An entry or a bucket carries the time of its writing as its timestamp, and is removed at
//! that: one that was added again stays.

use std::sync::Arc;

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::ordered::{
    BucketQuery, Entry, EntryQuery, ListBucket, ListPlace, ListRows,
};
use curt_adapter_kit::wide_column::together;
use curt_core::PortResult;

use crate::engine::Engine;
use crate::statement::Cql;

/// Entries of a bucket that are written in one request.
const ROWS_AT_ONCE: usize = 25;

const ADD: Cql = Cql::write(
    "INSERT INTO KEYSPACE.ordered (namespace, list, bucket, position, added) \
     VALUES (:namespace, :list, :bucket, :position, :added) USING TIMESTAMP :added_at",
);
const ADD_BUCKET: Cql = Cql::write(
    "INSERT INTO KEYSPACE.buckets (namespace, list, bucket, added) \
     VALUES (:namespace, :list, :bucket, :added) USING TIMESTAMP :added_at",
);
const DROP: Cql = Cql::write(
    "DELETE FROM KEYSPACE.ordered USING TIMESTAMP ? \
     WHERE namespace = ? AND list = ? AND bucket = ? AND position = ?",
);
const DROP_BUCKET: Cql = Cql::write(
    "DELETE FROM KEYSPACE.buckets USING TIMESTAMP ? WHERE namespace = ? AND list = ? AND bucket = ?",
);
const BUCKETS_RISING: Cql = Cql::read(
    "SELECT bucket, added FROM KEYSPACE.buckets \
     WHERE namespace = ? AND list = ? AND bucket >= ? AND bucket < ? ORDER BY bucket ASC LIMIT ?",
);
const BUCKETS_FALLING: Cql = Cql::read(
    "SELECT bucket, added FROM KEYSPACE.buckets \
     WHERE namespace = ? AND list = ? AND bucket >= ? AND bucket < ? ORDER BY bucket DESC LIMIT ?",
);
const ENTRIES_RISING: Cql = Cql::read(
    "SELECT position, added FROM KEYSPACE.ordered \
     WHERE namespace = ? AND list = ? AND bucket = ? AND position > ? AND position < ? \
     ORDER BY position ASC LIMIT ?",
);
const ENTRIES_FALLING: Cql = Cql::read(
    "SELECT position, added FROM KEYSPACE.ordered \
     WHERE namespace = ? AND list = ? AND bucket = ? AND position > ? AND position < ? \
     ORDER BY position DESC LIMIT ?",
);

/// The lists of one namespace.
pub(crate) struct CassandraLists {
    engine: Arc<Engine>,
    namespace: Arc<str>,
}

impl CassandraLists {
    pub(crate) fn rows(engine: &Arc<Engine>, namespace: &Arc<str>) -> Arc<dyn ListRows> {
        Arc::new(Self {
            engine: Arc::clone(engine),
            namespace: Arc::clone(namespace),
        })
    }
}

#[async_trait]
impl ListRows for CassandraLists {
    async fn add_buckets(
        &self,
        op: &'static str,
        buckets: &[(String, Vec<u8>)],
        added: i64,
    ) -> PortResult<()> {
        let add = |(list, bucket): &(String, Vec<u8>)| {
            let (list, bucket) = (list.clone(), bucket.clone());
            async move {
                let values = (&*self.namespace, list, bucket, added, added);
                let added = self.engine.write(op, Effect::None, ADD_BUCKET, values);
                added.await
            }
        };
        together(buckets.iter().map(add)).await.map(drop)
    }

    async fn add_entries(
        &self,
        op: &'static str,
        places: &[ListPlace],
        added: i64,
    ) -> PortResult<()> {
        let adds = by_bucket(places).into_iter().map(|places| async move {
            let row = |place: ListPlace| {
                let ListPlace {
                    list,
                    bucket,
                    position,
                } = place;
                (&*self.namespace, list, bucket, position, added, added)
            };
            let mut rows: Vec<_> = places.into_iter().map(row).collect();
            match (rows.pop(), rows.is_empty()) {
                (Some(only), true) => self.engine.write(op, Effect::None, ADD, only).await,
                (last, _) => {
                    rows.extend(last);
                    self.engine.write_rows(op, Effect::None, ADD, rows).await
                }
            }
        });
        together(adds).await.map(drop)
    }

    async fn buckets(
        &self,
        op: &'static str,
        query: BucketQuery<'_>,
    ) -> PortResult<Vec<ListBucket>> {
        let cql = match query.is_rising {
            true => BUCKETS_RISING,
            false => BUCKETS_FALLING,
        };
        let limit = i32::try_from(query.limit).unwrap_or(i32::MAX);
        let values = (
            &*self.namespace,
            query.list,
            query.from,
            query.before,
            limit,
        );
        let rows: Vec<(Vec<u8>, i64)> = self.engine.rows(op, cql, values).await?;
        let bucket = |(name, added)| ListBucket { name, added };
        Ok(rows.into_iter().map(bucket).collect())
    }

    async fn entries(&self, op: &'static str, query: EntryQuery<'_>) -> PortResult<Vec<Entry>> {
        let EntryQuery {
            list,
            bucket,
            low,
            high,
            ..
        } = query;
        let cql = match query.is_rising {
            true => ENTRIES_RISING,
            false => ENTRIES_FALLING,
        };
        let limit = i32::try_from(query.limit).unwrap_or(i32::MAX);
        let values = (&*self.namespace, list, bucket, low, high, limit);
        let rows: Vec<(Vec<u8>, i64)> = self.engine.rows(op, cql, values).await?;
        let entry = |(position, added): (Vec<u8>, i64)| Entry {
            place: ListPlace {
                list: list.to_owned(),
                bucket: bucket.to_vec(),
                position,
            },
            added,
        };
        Ok(rows.into_iter().map(entry).collect())
    }

    async fn drop_entry(&self, op: &'static str, entry: Entry) -> PortResult<()> {
        let ListPlace {
            list,
            bucket,
            position,
        } = entry.place;
        let values = (entry.added, &*self.namespace, list, bucket, position);
        self.engine.write(op, Effect::None, DROP, values).await
    }

    async fn drop_bucket(
        &self,
        op: &'static str,
        list: &str,
        bucket: &ListBucket,
    ) -> PortResult<()> {
        let values = (bucket.added, &*self.namespace, list, &bucket.name);
        let dropped = self.engine.write(op, Effect::None, DROP_BUCKET, values);
        dropped.await
    }
}

/// Places of one bucket together, some at a time.
fn by_bucket(places: &[ListPlace]) -> Vec<Vec<ListPlace>> {
    fn name(place: &ListPlace) -> (&str, &[u8]) {
        (&place.list, &place.bucket)
    }
    let mut places = places.to_vec();
    places.sort_unstable_by(|one, other| name(one).cmp(&name(other)));
    let same = places.chunk_by(|one, next| name(one) == name(next));
    let parts = same.flat_map(|places| places.chunks(ROWS_AT_ONCE));
    parts.map(<[ListPlace]>::to_vec).collect()
}
