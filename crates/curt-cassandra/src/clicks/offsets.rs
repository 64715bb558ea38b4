use async_trait::async_trait;
use curt_adapter_kit::wide_column::clicks::{OffsetRows, StoredOffset};
use curt_adapter_kit::wide_column::{Decided, Mark, ScanPart};
use curt_core::PortResult;
use curt_core::ports::{StreamId, StreamPartition};
use scylla::DeserializeRow;

use super::CassandraClicks;
use crate::failure::corrupt;
use crate::scan::HashedRow;
use crate::statement::Cql;

const GET: Cql = Cql::read(
    "SELECT next_offset, mark, manifest FROM KEYSPACE.click_offsets \
     WHERE namespace = ? AND stream = ? AND partition = ?",
)
.serial();
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_offsets (namespace, stream, partition, next_offset, mark, manifest) \
     VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS",
);
const MOVE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_offsets SET next_offset = ?, mark = ?, manifest = ? \
     WHERE namespace = ? AND stream = ? AND partition = ? IF next_offset = ? AND manifest = null",
);
const FINISH: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_offsets SET manifest = null \
     WHERE namespace = ? AND stream = ? AND partition = ? IF mark = ?",
);

/// Rows that one statement of a scan reads.
const SCANNED_AT_ONCE: i32 = 5_000;
const SCAN: Cql = Cql::read(
    "SELECT token(namespace, stream, partition) AS hash, namespace, stream, partition FROM KEYSPACE.click_offsets \
     WHERE token(namespace, stream, partition) > ? AND token(namespace, stream, partition) <= ? LIMIT ?",
);

#[derive(DeserializeRow)]
struct ScannedOffset {
    hash: i64,
    namespace: String,
    stream: i64,
    partition: i64,
}

impl HashedRow for ScannedOffset {
    fn hash(&self) -> i64 {
        self.hash
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

#[async_trait]
impl OffsetRows for CassandraClicks {
    async fn get_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
    ) -> PortResult<Option<StoredOffset>> {
        let (stream, number) = columns(partition);
        let values = (&*self.namespace, stream, number);
        let row: Option<(i64, Vec<u8>, Option<String>)> =
            self.engine.first(op, GET, values).await?;
        let Some((offset, mark, manifest)) = row else {
            return Ok(None);
        };
        let mark = mark.try_into().map_err(|_| corrupt(op, "a mark"))?;
        Ok(Some(StoredOffset {
            offset: offset.cast_unsigned(),
            mark: Mark(mark),
            manifest,
        }))
    }

    async fn move_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
        from: Option<u64>,
        next: &StoredOffset,
    ) -> PortResult<Decided> {
        let (stream, number) = columns(partition);
        let (to, mark, manifest) = (next.offset.cast_signed(), &next.mark.0[..], &next.manifest);
        let namespace = &*self.namespace;
        match from.map(u64::cast_signed) {
            None => {
                let values = (namespace, stream, number, to, mark, manifest);
                self.engine.decide(op, INSERT, values).await
            }
            Some(from) => {
                let values = (to, mark, manifest, namespace, stream, number, from);
                self.engine.decide(op, MOVE, values).await
            }
        }
    }

    async fn finish_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
        mark: Mark,
    ) -> PortResult<Decided> {
        let (stream, number) = columns(partition);
        let values = (&*self.namespace, stream, number, &mark.0[..]);
        self.engine.decide(op, FINISH, values).await
    }

    async fn scan_offsets(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<StreamPartition>> {
        let scan = self
            .engine
            .scan(op, SCAN, &self.namespace, after, SCANNED_AT_ONCE);
        let part: ScanPart<ScannedOffset> = scan.await?;
        let partition = |row: &ScannedOffset| {
            let number = u32::try_from(row.partition);
            Ok(StreamPartition {
                stream: StreamId(row.stream.cast_unsigned()),
                number: number.map_err(|error| corrupt(op, error))?,
            })
        };
        let partitions: PortResult<_> = part.rows.iter().map(partition).collect();
        Ok(ScanPart {
            rows: partitions?,
            next: part.next,
        })
    }
}

fn columns(StreamPartition { stream, number }: StreamPartition) -> (i64, i64) {
    (stream.0.cast_signed(), number.into())
}
