//! Offsets, each an item with the manifest of the window that moved it last. A manifest that is too long for that has
//! items of its own, under the window's mark.

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::clicks::{OffsetRows, StoredOffset};
use curt_adapter_kit::wide_column::{Decided, Mark, ScanPart};
use curt_core::PortResult;
use curt_core::ports::{StreamId, StreamPartition};
use data_encoding::HEXLOWER;

use super::DynamoDbClicks;
use super::contents::{PART_BYTES, count_parts, parts_of};
use crate::bulk::Scan;
use crate::failure::corrupt;
use crate::item::{Item, Key, PARTITION, bytes, number, text};
use crate::write::{Condition, Write};

const PREFIX: &str = "click-offset/";

fn offset_key(partition: StreamPartition) -> Key {
    let StreamPartition { stream, number } = partition;
    Key::item(format!("{PREFIX}{}/{number}", stream.0))
}

fn partition_of(key: &str) -> Option<StreamPartition> {
    let (stream, number) = key.strip_prefix(PREFIX)?.split_once('/')?;
    Some(StreamPartition {
        stream: StreamId(stream.parse().ok()?),
        number: number.parse().ok()?,
    })
}

fn manifest_partition(mark: Mark) -> String {
    format!("click-manifest/{}", HEXLOWER.encode(&mark.0))
}

#[async_trait]
impl OffsetRows for DynamoDbClicks {
    async fn get_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
    ) -> PortResult<Option<StoredOffset>> {
        let Some(item) = self.engine.get(op, &offset_key(partition)).await? else {
            return Ok(None);
        };
        let mark = Mark(item.fixed("mark")?);
        let manifest = match item.maybe_number("manifest_parts")? {
            None => item.maybe_text("manifest")?.map(str::to_owned),
            Some(_) => {
                let parts = self.get_parts(op, manifest_partition(mark)).await?;
                let read = String::from_utf8(parts);
                Some(read.map_err(|error| corrupt(op, error))?)
            }
        };
        Ok(Some(StoredOffset {
            offset: item.number("next_offset")?.cast_unsigned(),
            mark,
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
        let manifest = next.manifest.as_deref().unwrap_or_default();
        let is_long = manifest.len() > PART_BYTES;
        if is_long {
            let parts = parts_of(&manifest_partition(next.mark), manifest.as_bytes());
            self.engine.put_many(op, Effect::None, &parts).await?;
        }
        let parts = is_long.then(|| number(count_parts(manifest.as_bytes())));
        let attributes = vec![
            ("next_offset", Some(number(next.offset.cast_signed()))),
            ("mark", Some(bytes(&next.mark.0))),
            ("manifest", (!is_long).then(|| text(manifest))),
            ("manifest_parts", parts),
        ];
        let write = Write::put(offset_key(partition), attributes);
        let write = match from {
            None => write.when(Condition::Absent),
            Some(from) => write
                .when_equal("next_offset", number(from.cast_signed()))
                .when(Condition::Without("manifest"))
                .when(Condition::Without("manifest_parts")),
        };
        self.engine.decide(op, &write).await
    }

    async fn finish_offset(
        &self,
        op: &'static str,
        partition: StreamPartition,
        mark: Mark,
    ) -> PortResult<Decided> {
        let key = offset_key(partition);
        let item = self.engine.get(op, &key).await?;
        let write = Write::update(key, vec![("manifest", None), ("manifest_parts", None)]);
        let write = write.when_equal("mark", bytes(&mark.0));
        let decided = self.engine.decide(op, &write).await?;
        if let Some(item) = item
            && matches!(decided, Decided::Applied)
            && item.maybe_number("manifest_parts")?.is_some()
        {
            let parts = item.small("manifest_parts")?;
            // What is left of them takes room and nothing else.
            let partition = manifest_partition(mark);
            self.delete_parts(op, &partition, parts).await.ok();
        }
        Ok(decided)
    }

    async fn scan_offsets(
        &self,
        op: &'static str,
        after: Option<&str>,
    ) -> PortResult<ScanPart<StreamPartition>> {
        let part = self.engine.scan(op, Scan::keys(PREFIX), after).await?;
        let partition = |item: &Item| {
            let partition = partition_of(item.text(PARTITION)?);
            partition.ok_or_else(|| corrupt(op, "the partition of an offset"))
        };
        let partitions: PortResult<_> = part.rows.iter().map(partition).collect();
        Ok(ScanPart {
            rows: partitions?,
            next: part.next,
        })
    }
}
