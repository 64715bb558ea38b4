//! Blocks of single clicks: one catalogue.

use crate::click_blocks::{
    BlockEntry, BlockList, BlockPlace, BlockRange, ClickBlocks, SMALL_CLICKS,
};
use async_trait::async_trait;
use curt_core::click_block::NewBlock;
use curt_core::{PortResult, UnixMillis};

use super::WideClicks;
use super::manifest::BlockRow;
use super::rows::DamagedKind;
use crate::wide_column::ordered::{ListPlace, Span};
use crate::wide_column::ordered::{of_sortable, sortable};
use crate::wide_column::{Decided, together};

const OLDEST: &str = "clicks/oldest";
const SMALL: &str = "clicks/small-blocks";
const DAY: i64 = 24 * 3_600_000;
const ROWS_AT_ONCE: usize = 200;

impl BlockRow {
    fn to_entry(&self) -> Option<BlockEntry> {
        Some(BlockEntry {
            id: self.id,
            first_at: self.first_at,
            last_at: self.last_at,
            clicks: u32::try_from(self.clicks).ok()?,
            bytes: u32::try_from(self.bytes).ok()?,
            subjects: Vec::new(),
        })
    }

    fn place(&self) -> BlockPlace {
        BlockPlace {
            last_at: self.last_at,
            id: self.id,
        }
    }
}

#[async_trait]
impl ClickBlocks for WideClicks {
    fn backend(&self) -> &'static str {
        self.deadlines.backend
    }

    async fn list(
        &self,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList> {
        const OP: &str = "list blocks of clicks";
        self.deadlines
            .list(OP, self.list_blocks(OP, range, after, limit))
            .await
    }

    async fn list_oldest(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        const OP: &str = "list the oldest blocks of clicks";
        let listed = self.blocks_in(OP, OLDEST, true, limit, |_| true);
        self.deadlines.list(OP, listed).await
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        const OP: &str = "list small blocks of clicks";
        let listed = async {
            let damaged = self.rows.get_damage(OP, DamagedKind::Block).await?;
            let is_whole = |entry: &BlockEntry| {
                entry.clicks < SMALL_CLICKS && !damaged.iter().any(|(id, _)| *id == entry.id)
            };
            let limit = limit.min(self.rows.replaced_max());
            self.blocks_in(OP, SMALL, false, limit, is_whole).await
        };
        self.deadlines.list(OP, listed).await
    }

    async fn read(&self, ids: &[i64]) -> PortResult<Vec<(i64, Vec<u8>)>> {
        const OP: &str = "read blocks of clicks";
        let reads = ids.iter().map(|id| async move {
            let content = self.rows.get_content(OP, *id).await?;
            Ok(content.map(|content| (*id, content)))
        });
        let read = self.deadlines.list(OP, together(reads)).await?;
        Ok(read.into_iter().flatten().collect())
    }

    async fn sum_bytes(&self) -> PortResult<u64> {
        const OP: &str = "measure clicks";
        let sum = self.rows.sum_block_bytes(OP);
        self.deadlines.list(OP, sum).await
    }

    async fn replace(&self, old: &[i64], new: Vec<NewBlock>) -> PortResult<bool> {
        const OP: &str = "replace blocks of clicks";
        self.deadlines
            .change_much(OP, self.replace_blocks(OP, old, &new))
            .await
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.note_damage(DamagedKind::Block, id).await
    }
}

impl WideClicks {
    async fn list_blocks(
        &self,
        op: &'static str,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList> {
        // Of the first rows: a move in between is found with the next piece.
        let mut version = None;
        let (mut after, mut listed) = (after, Vec::new());
        while listed.len() < limit {
            let rows_max = (limit - listed.len()).clamp(1, ROWS_AT_ONCE);
            let (moves, rows) = self.rows.list_rows(op, after, range.from, rows_max).await?;
            version.get_or_insert(moves);
            for stored in &rows {
                after = stored.row.place();
                let entry = self.entry_of(op, &stored.row)?;
                if !stored.is_gone && entry.first_at < range.before {
                    listed.push(entry);
                }
            }
            if rows.len() < rows_max {
                break;
            }
        }
        let subjects = together(
            listed
                .iter()
                .map(|entry| self.rows.get_subjects(op, entry.id)),
        )
        .await?;
        // Without one, the block was moved since it was listed, and is not there when it is read.
        let whole = listed.into_iter().zip(subjects);
        let blocks = whole.filter_map(|(entry, subjects)| {
            let subjects = subjects?;
            Some(BlockEntry { subjects, ..entry })
        });
        Ok(BlockList {
            blocks: blocks.collect(),
            version: version.unwrap_or(0),
        })
    }

    fn entry_of(&self, op: &'static str, row: &BlockRow) -> PortResult<BlockEntry> {
        row.to_entry().ok_or_else(|| self.corrupt(op, "a block"))
    }

    /// Blocks of a list that are there and wanted.
    async fn blocks_in(
        &self,
        op: &'static str,
        list: &str,
        is_rising: bool,
        limit: usize,
        is_wanted: impl Fn(&BlockEntry) -> bool,
    ) -> PortResult<Vec<BlockEntry>> {
        let mut span = Span::all(list, is_rising);
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = (limit - found.len()).min(ROWS_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let reads = entries.entries.iter().map(|entry| {
                let place = block_at(list, &entry.place.position);
                async move {
                    match place {
                        Some(place) => self.rows.get_row(op, place).await,
                        None => Ok(None),
                    }
                }
            });
            let rows = together(reads).await?;
            let (mut over, mut stale) = (Vec::new(), Vec::new());
            for (entry, row) in entries.entries.into_iter().zip(rows) {
                span.follow(&entry.place);
                match row {
                    Some(stored) if !stored.is_gone => {
                        let block = self.entry_of(op, &stored.row)?;
                        found.extend(is_wanted(&block).then_some(block));
                    }
                    // Once removed it stays so.
                    Some(_) => over.push(entry),
                    None => stale.push(entry),
                }
            }
            self.lists.drop_entries(op, over).await?;
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                break;
            }
        }
        Ok(found)
    }

    /// Enters a block. Called twice, or after it was replaced: no change.
    pub(super) async fn enter_block(&self, op: &'static str, block: &BlockRow) -> PortResult<()> {
        self.lists.add(op, places_of(block)).await?;
        let entered = self.rows.insert_block(op, block).await?;
        entered.into_result().map(drop)
    }

    async fn replace_blocks(
        &self,
        op: &'static str,
        old: &[i64],
        new: &[NewBlock],
    ) -> PortResult<bool> {
        let _turn = self.turn.lock().await;
        let Some((moves, removed)) = self.rows_of(op, old).await? else {
            return Ok(false);
        };
        let rows: Vec<BlockRow> = new.iter().map(BlockRow::new).collect();
        let contents = rows.iter().zip(new).map(|(row, block)| row.content(block));
        self.rows.put_contents(op, contents.collect()).await?;
        self.lists.add(op, rows.iter().flat_map(places_of)).await?;
        let replaced = self.rows.replace_blocks(op, moves, &removed, &rows);
        let is_done = match replaced.await? {
            Decided::Applied => true,
            Decided::Refused => false,
            // Nothing is lost either way: contents stay, and whoever lists finds what is there.
            Decided::Unknown(error) => return Err(error),
        };
        let over = match is_done {
            true => old.to_vec(),
            false => rows.iter().map(|row| row.id).collect(),
        };
        self.delete_contents(op, over).await;
        Ok(is_done)
    }

    /// How often blocks were replaced before their rows were read. `None`: one of them is gone.
    async fn rows_of(
        &self,
        op: &'static str,
        ids: &[i64],
    ) -> PortResult<Option<(i64, Vec<BlockRow>)>> {
        let (mut version, mut found) = (None, Vec::with_capacity(ids.len()));
        let mut after = BlockPlace::START;
        while found.len() < ids.len() {
            let from = UnixMillis(i64::MIN);
            let (moves, rows) = self.rows.list_rows(op, after, from, ROWS_AT_ONCE).await?;
            version.get_or_insert(moves);
            let is_full = rows.len() == ROWS_AT_ONCE;
            after = rows.last().map_or(after, |stored| stored.row.place());
            let there = rows.into_iter().filter(|stored| !stored.is_gone);
            let meant = there.filter(|stored| ids.contains(&stored.row.id));
            found.extend(meant.map(|stored| stored.row));
            if !is_full {
                break;
            }
        }
        let is_all = found.len() == ids.len();
        Ok(is_all.then_some((version.unwrap_or(0), found)))
    }
}

/// Where a block is looked for: by its oldest click, and by its id while it is small.
fn places_of(block: &BlockRow) -> Vec<ListPlace> {
    let last_at = sortable(block.last_at.0);
    let id = block.id.to_be_bytes();
    let first_at = sortable(block.first_at.0);
    let mut places = vec![ListPlace {
        list: OLDEST.to_owned(),
        bucket: sortable(block.first_at.0.div_euclid(DAY)).to_vec(),
        position: [&first_at[..], &id, &last_at].concat(),
    }];
    if block.clicks < SMALL_CLICKS.into() {
        places.push(ListPlace {
            list: SMALL.to_owned(),
            bucket: vec![0],
            position: [&id[..], &last_at].concat(),
        });
    }
    places
}

/// The block that stands there.
fn block_at(list: &str, position: &[u8]) -> Option<BlockPlace> {
    let rest = match list {
        OLDEST => position.split_first_chunk::<8>()?.1,
        _ => position,
    };
    let (id, last_at) = rest.split_first_chunk::<8>()?;
    Some(BlockPlace {
        last_at: UnixMillis(of_sortable(last_at.try_into().ok()?)),
        id: i64::from_be_bytes(*id),
    })
}
