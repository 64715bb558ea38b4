//! Everything that a clicks database keeps, to be copied to another one: the same bytes in every engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::click_block::NewBlock;
use curt_core::ports::{
    COPY_PARTITION, ClickItem, ClickRun, CopyPlace, ImportReport, Replacement, Salt, StreamId,
    StreamPartition, Transfer, TransferPart, Transferred as _,
};
use curt_core::{Day, ErrorKind, PortError, PortResult, UnixMillis};

use crate::click_blocks::{BlockEntry, BlockPlace, BlockRange, ClickBlocks};
use crate::rollup_runs::{NewChunk, NewRun, RollupRuns, first_key_of};
use crate::{ClickTables, EncodedWindow};

const OP_EXPORT: &str = "export clicks";
const OP_IMPORT: &str = "import clicks";
/// A run may take some megabytes, a block some hundred kilobytes.
const BLOCKS_AT_ONCE: usize = 8;
const EVER: BlockRange = BlockRange {
    from: UnixMillis(i64::MIN),
    before: UnixMillis(i64::MAX),
};

/// What an engine offers for copies beside its ports, and beside runs and blocks.
#[async_trait]
pub trait ClickCopies: ClickTables {
    /// The first run behind this one by day and id.
    async fn next_run(&self, after: Option<(Day, i64)>) -> PortResult<Option<StoredRun>>;

    /// The offsets of all streams.
    async fn all_offsets(&self) -> PortResult<Vec<(StreamPartition, u64)>>;

    async fn all_salts(&self) -> PortResult<Vec<(Day, Salt)>>;

    /// As [`ClickTables::apply`].
    async fn apply_encoded(&self, window: EncodedWindow) -> PortResult<bool>;
}

/// A run that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRun {
    pub id: i64,
    pub day: Day,
    pub subjects: u32,
}

/// A clicks database as one side of a copy.
pub struct ClickTransfer {
    clicks: Arc<dyn ClickCopies>,
    copy: StreamId,
}

/// Where an export goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    /// Behind a run; so many were exported.
    Runs(Option<(Day, i64)>, u64),
    Blocks(BlockPlace, u64),
    Rest,
}

impl Position {
    fn read(text: Option<&str>) -> Option<Self> {
        let Some(text) = text else {
            return Some(Self::Runs(None, 0));
        };
        if text == "z" {
            return Some(Self::Rest);
        }
        let (kind, rest) = text.split_at_checked(1)?;
        let mut numbers = rest.split(':');
        let mut number = || numbers.next()?.parse::<i64>().ok();
        let (count, at, id) = (number()?, number()?, number()?);
        let count = u64::try_from(count).ok()?;
        match (kind, numbers.next()) {
            ("r", None) => {
                let day = Day::numbered(u32::try_from(at).ok()?);
                Some(Self::Runs(Some((day, id)), count))
            }
            ("b", None) => {
                let last_at = UnixMillis(at);
                Some(Self::Blocks(BlockPlace { last_at, id }, count))
            }
            _ => None,
        }
    }

    fn to_text(&self) -> Box<str> {
        match self {
            Self::Runs(after, count) => {
                let (day, id) = after.unwrap_or((Day::FIRST, i64::MIN));
                format!("r{count}:{}:{id}", day.number())
            }
            Self::Blocks(after, count) => format!("b{count}:{}:{}", after.last_at.0, after.id),
            Self::Rest => "z".to_owned(),
        }
        .into()
    }
}

impl ClickTransfer {
    /// `copy` tells copies of different sources apart; both sides of one have the same.
    #[must_use]
    pub fn new(clicks: Arc<dyn ClickCopies>, copy: StreamId) -> Self {
        Self { clicks, copy }
    }

    fn backend(&self) -> &'static str {
        RollupRuns::backend(&*self.clicks)
    }

    fn failed(&self, kind: ErrorKind, op: &'static str, detail: &str) -> PortError {
        PortError::new(kind, self.backend(), op, detail)
    }

    async fn export_run(
        &self,
        after: Option<(Day, i64)>,
        number: u64,
    ) -> PortResult<(Vec<ClickItem>, Position)> {
        let Some(found) = self.clicks.next_run(after).await? else {
            return Ok((Vec::new(), Position::Blocks(BlockPlace::START, number)));
        };
        let next = Position::Runs(Some((found.day, found.id)), number + 1);
        let mut chunks = Vec::new();
        for content in RollupRuns::read(&*self.clicks, found.id).await? {
            let damaged = |_| {
                let detail = format!("counts of day {} are damaged", found.day.number());
                self.failed(ErrorKind::Corrupt, OP_EXPORT, &detail)
            };
            chunks.push((first_key_of(&content).map_err(damaged)?, content));
        }
        let run = ClickRun {
            day: found.day,
            subjects: found.subjects,
            chunks,
        };
        let copy = self.copy;
        let place = CopyPlace { copy, number };
        Ok((vec![ClickItem::Run { place, run }], next))
    }

    async fn export_blocks(
        &self,
        after: BlockPlace,
        first: u64,
    ) -> PortResult<(Vec<ClickItem>, Position)> {
        let clicks = &*self.clicks;
        let listed = ClickBlocks::list(clicks, EVER, after, BLOCKS_AT_ONCE).await?;
        let Some(last) = listed.blocks.last() else {
            return Ok((Vec::new(), Position::Rest));
        };
        let place = BlockPlace {
            last_at: last.last_at,
            id: last.id,
        };
        let next = Position::Blocks(place, first + listed.blocks.len() as u64);
        let ids: Vec<i64> = listed.blocks.iter().map(|block| block.id).collect();
        let contents = ClickBlocks::read(clicks, &ids).await?;
        let mut contents: BTreeMap<i64, Vec<u8>> = contents.into_iter().collect();
        let mut items = Vec::with_capacity(ids.len());
        for (number, entry) in (first..).zip(listed.blocks) {
            let BlockEntry {
                first_at, last_at, ..
            } = entry;
            let gone = || {
                let detail = "clicks were put together while they were read: let no server use this database meanwhile";
                self.failed(ErrorKind::Unavailable, OP_EXPORT, detail)
            };
            let block = NewBlock {
                first_at,
                last_at,
                clicks: entry.clicks,
                subjects: entry.subjects,
                bytes: contents.remove(&entry.id).ok_or_else(gone)?,
            };
            let copy = self.copy;
            let place = CopyPlace { copy, number };
            items.push(ClickItem::Block { place, block });
        }
        Ok((items, next))
    }

    async fn export_rest(&self) -> PortResult<Vec<ClickItem>> {
        let salts = self.clicks.all_salts().await?.into_iter();
        let mut items: Vec<ClickItem> = salts
            .map(|(day, salt)| ClickItem::Salt { day, salt })
            .collect();
        let offsets = self.clicks.all_offsets().await?.into_iter();
        let others = offsets.filter(|(partition, _)| partition.number != COPY_PARTITION);
        items.extend(others.map(|(partition, next)| ClickItem::Offset { partition, next }));
        Ok(items)
    }

    async fn import(
        &self,
        item: &ClickItem,
        salts: &BTreeMap<Day, Salt>,
    ) -> PortResult<Replacement> {
        match item {
            ClickItem::Run { place, run } => {
                let chunks = run.chunks.iter().cloned();
                let run = NewRun {
                    day: run.day,
                    subjects: run.subjects,
                    chunks: chunks
                        .map(|(first_key, content)| NewChunk { first_key, content })
                        .collect(),
                };
                self.import_window(*place, vec![run], Vec::new()).await
            }
            ClickItem::Block { place, block } => {
                self.import_window(*place, Vec::new(), vec![block.clone()])
                    .await
            }
            ClickItem::Salt { day, salt } => match salts.get(day) {
                Some(there) if there == salt => Ok(Replacement::Same),
                // Visitors of the day were counted by it already.
                Some(_) => Ok(Replacement::Outdated),
                None => self
                    .clicks
                    .salt(*day, *salt)
                    .await
                    .map(|_| Replacement::Write),
            },
            ClickItem::Offset { partition, next } => {
                let from = self.clicks.offset(*partition).await?;
                let there = ClickItem::Offset {
                    partition: *partition,
                    next: from,
                };
                let decided = item.replaces(&there);
                if decided == Replacement::Write {
                    let window = EncodedWindow {
                        partition: *partition,
                        from,
                        to: *next,
                        runs: Vec::new(),
                        blocks: Vec::new(),
                    };
                    self.clicks.apply_encoded(window).await?;
                }
                Ok(decided)
            }
        }
    }

    /// Adds what was not added yet.
    async fn import_window(
        &self,
        place: CopyPlace,
        runs: Vec<NewRun>,
        blocks: Vec<NewBlock>,
    ) -> PortResult<Replacement> {
        let partition = StreamPartition {
            stream: place.copy,
            number: COPY_PARTITION,
        };
        let window = EncodedWindow {
            partition,
            from: place.number,
            to: place.number + 1,
            runs,
            blocks,
        };
        if self.clicks.apply_encoded(window).await? {
            return Ok(Replacement::Write);
        }
        match self.clicks.offset(partition).await? > place.number {
            true => Ok(Replacement::Same),
            false => {
                let detail = "a part of the clicks before this one is missing: begin the copy anew, in an empty database";
                Err(self.failed(ErrorKind::Invalid, OP_IMPORT, detail))
            }
        }
    }
}

#[async_trait]
impl Transfer<ClickItem> for ClickTransfer {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<ClickItem>> {
        let wrong = || {
            let detail = "the position is not one of a clicks database";
            self.failed(ErrorKind::Invalid, OP_EXPORT, detail)
        };
        let (items, next) = match Position::read(after).ok_or_else(wrong)? {
            Position::Runs(after, count) => self.export_run(after, count).await?,
            Position::Blocks(after, count) => self.export_blocks(after, count).await?,
            Position::Rest => {
                let items = self.export_rest().await?;
                return Ok(TransferPart { items, next: None });
            }
        };
        let next = Some(next.to_text());
        Ok(TransferPart { items, next })
    }

    async fn import_all(&self, items: &[ClickItem]) -> PortResult<ImportReport> {
        let has_salts = items
            .iter()
            .any(|item| matches!(item, ClickItem::Salt { .. }));
        let salts: BTreeMap<Day, Salt> = match has_salts {
            true => self.clicks.all_salts().await?.into_iter().collect(),
            false => BTreeMap::new(),
        };
        let mut report = ImportReport::default();
        for item in items {
            let decided = self.import(item, &salts).await?;
            report.count(item, decided);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_were_written() {
        let place = BlockPlace {
            last_at: UnixMillis(-5),
            id: -9,
        };
        for position in [
            Position::Runs(Some((Day::numbered(7), i64::MIN)), 3),
            Position::Blocks(place, u64::from(u32::MAX)),
            Position::Blocks(BlockPlace::START, 0),
            Position::Rest,
        ] {
            assert_eq!(Position::read(Some(&position.to_text())), Some(position));
        }
        for wrong in [
            "", "x", "r1", "r1:2", "r1:2:3:4", "b-1:2:3", "zz", "r1:-2:3",
        ] {
            assert_eq!(Position::read(Some(wrong)), None, "{wrong}");
        }
    }
}
