//! Blocks of single clicks: one catalogue.

use async_trait::async_trait;
use curt_adapter_kit::click_blocks::{
    BlockEntry, BlockList, BlockPlace, BlockRange, ClickBlocks, SMALL_CLICKS,
};
use curt_core::click_block::NewBlock;
use curt_core::{PortResult, UnixMillis};
use scylla::DeserializeRow;
use scylla::value::CqlValue;

use super::manifest::BlockRow;
use super::{CassandraClicks, Damaged};
use crate::failure::{BACKEND, corrupt};
use crate::links::lists::{of_sortable, sortable};
use crate::ordered::{POSITION_BYTES_MAX, Place, Span};
use crate::statement::{Cql, Decided};
use crate::together::together;

const MOVES: Cql = Cql::read(
    "SELECT moves FROM KEYSPACE.click_blocks WHERE namespace = ? AND list = 'all' LIMIT 1",
);
const LIST: Cql = Cql::read(
    "SELECT moves, last_at, id, first_at, clicks, bytes, gone FROM KEYSPACE.click_blocks \
     WHERE namespace = ? AND list = 'all' AND (last_at, id) < (?, ?) AND (last_at) >= (?) LIMIT ?",
);
const GET: Cql = Cql::read(
    "SELECT moves, last_at, id, first_at, clicks, bytes, gone FROM KEYSPACE.click_blocks \
     WHERE namespace = ? AND list = 'all' AND last_at = ? AND id = ?",
);
const SUM: Cql = Cql::read(
    "SELECT sum(bytes) AS bytes FROM KEYSPACE.click_blocks WHERE namespace = ? AND list = 'all'",
);
const ENTER: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_blocks (namespace, list, last_at, id, first_at, clicks, bytes, gone) \
     VALUES (?, 'all', ?, ?, ?, ?, ?, false) IF NOT EXISTS",
);
const COUNT_MOVE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_blocks SET moves = ? WHERE namespace = ? AND list = 'all' IF moves = ?",
);
const REMOVE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_blocks SET gone = true, bytes = 0 \
     WHERE namespace = ? AND list = 'all' AND last_at = ? AND id = ? IF gone = false",
);

const OLDEST: &str = "clicks/oldest";
const SMALL: &str = "clicks/small-blocks";
const DAY: i64 = 24 * 3_600_000;
const ROWS_AT_ONCE: usize = 200;

#[derive(Clone, Debug, DeserializeRow)]
struct CatalogueRow {
    moves: Option<i64>,
    last_at: i64,
    id: i64,
    first_at: Option<i64>,
    clicks: Option<i64>,
    bytes: Option<i64>,
    gone: Option<bool>,
}

impl CatalogueRow {
    fn to_entry(&self, op: &'static str) -> PortResult<BlockEntry> {
        let small = |number: Option<i64>| {
            let number = number.unwrap_or(-1);
            u32::try_from(number).map_err(|_| corrupt(op, number))
        };
        Ok(BlockEntry {
            id: self.id,
            first_at: UnixMillis(self.first_at.unwrap_or(self.last_at)),
            last_at: UnixMillis(self.last_at),
            clicks: small(self.clicks)?,
            bytes: small(self.bytes)?,
            subjects: Vec::new(),
        })
    }

    fn is_there(&self) -> bool {
        self.gone == Some(false)
    }
}

#[async_trait]
impl ClickBlocks for CassandraClicks {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn list(
        &self,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList> {
        const OP: &str = "list blocks of clicks";
        self.engine
            .list(OP, self.list_blocks(OP, range, after, limit))
            .await
    }

    async fn list_oldest(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        const OP: &str = "list the oldest blocks of clicks";
        let listed = self.blocks_in(OP, OLDEST, true, limit, |_| true);
        self.engine.list(OP, listed).await
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        const OP: &str = "list small blocks of clicks";
        let listed = async {
            let damaged = self.damaged(OP, Damaged::Block).await?;
            let is_whole = |entry: &BlockEntry| {
                entry.clicks < SMALL_CLICKS && !damaged.iter().any(|(id, _)| *id == entry.id)
            };
            self.blocks_in(OP, SMALL, false, limit, is_whole).await
        };
        self.engine.list(OP, listed).await
    }

    async fn read(&self, ids: &[i64]) -> PortResult<Vec<(i64, Vec<u8>)>> {
        const OP: &str = "read blocks of clicks";
        let reads = ids.iter().map(|id| async move {
            let content = self.get_content(OP, *id).await?;
            Ok(content.map(|content| (*id, content)))
        });
        let read = self.engine.list(OP, together(reads)).await?;
        Ok(read.into_iter().flatten().collect())
    }

    async fn sum_bytes(&self) -> PortResult<u64> {
        const OP: &str = "measure clicks";
        let sum = self.engine.first(OP, SUM, (&*self.namespace,));
        let sum: Option<(Option<i64>,)> = self.engine.list(OP, sum).await?;
        Ok(sum.and_then(|(sum,)| sum).unwrap_or(0).cast_unsigned())
    }

    async fn replace(&self, old: &[i64], new: Vec<NewBlock>) -> PortResult<bool> {
        const OP: &str = "replace blocks of clicks";
        self.engine
            .change_much(OP, self.replace_blocks(OP, old, &new))
            .await
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.note_damage(Damaged::Block, id).await
    }
}

impl CassandraClicks {
    async fn moves(&self, op: &'static str, cql: Cql) -> PortResult<Option<i64>> {
        let row: Option<(Option<i64>,)> = self.engine.first(op, cql, (&*self.namespace,)).await?;
        Ok(row.and_then(|(moves,)| moves))
    }

    async fn list_blocks(
        &self,
        op: &'static str,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList> {
        // Before the rows: a move in between is found with the next piece.
        let mut version = self.moves(op, MOVES).await?;
        let (mut after, mut listed) = (after, Vec::new());
        while listed.len() < limit {
            let rows_max = (limit - listed.len()).clamp(1, ROWS_AT_ONCE);
            let values = (
                &*self.namespace,
                after.last_at.0,
                after.id,
                range.from.0,
                i32::try_from(rows_max).unwrap_or(i32::MAX),
            );
            let rows: Vec<CatalogueRow> = self.engine.rows(op, LIST, values).await?;
            for row in &rows {
                if listed.is_empty() {
                    version = row.moves;
                }
                after = BlockPlace {
                    last_at: UnixMillis(row.last_at),
                    id: row.id,
                };
                let entry = row.to_entry(op)?;
                if row.is_there() && entry.first_at < range.before {
                    listed.push(entry);
                }
            }
            if rows.len() < rows_max {
                break;
            }
        }
        let subjects = together(listed.iter().map(|entry| self.get_subjects(op, entry.id))).await?;
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

    /// Blocks of a list that are there and wanted.
    async fn blocks_in(
        &self,
        op: &'static str,
        list: &str,
        is_rising: bool,
        limit: usize,
        is_wanted: impl Fn(&BlockEntry) -> bool,
    ) -> PortResult<Vec<BlockEntry>> {
        let mut span = Span {
            list: list.to_owned(),
            buckets: (Vec::new(), vec![u8::MAX; 16]),
            positions: (Vec::new(), vec![u8::MAX; POSITION_BYTES_MAX]),
            is_rising,
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = (limit - found.len()).min(ROWS_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let reads = entries.entries.iter().map(|entry| {
                let place = block_at(list, &entry.place.position);
                async move {
                    let Some((last_at, id)) = place else {
                        return Ok(None);
                    };
                    let values = (&*self.namespace, last_at, id);
                    self.engine.first::<CatalogueRow>(op, GET, values).await
                }
            });
            let rows = together(reads).await?;
            let (mut over, mut stale) = (Vec::new(), Vec::new());
            for (entry, row) in entries.entries.into_iter().zip(rows) {
                span.follow(&entry.place);
                match row {
                    Some(row) if row.is_there() => {
                        let block = row.to_entry(op)?;
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
        let values = (
            &*self.namespace,
            block.last_at.0,
            block.id,
            block.first_at.0,
            block.clicks,
            block.bytes,
        );
        match self.engine.decide(op, ENTER, values).await? {
            Decided::Applied | Decided::Refused => Ok(()),
            Decided::Unknown(error) => Err(error),
        }
    }

    async fn replace_blocks(
        &self,
        op: &'static str,
        old: &[i64],
        new: &[NewBlock],
    ) -> PortResult<bool> {
        let _turn = self.turn.lock().await;
        let moves = self.moves(op, MOVES.serial()).await?;
        let Some(ends) = self.ends_of(op, old).await? else {
            return Ok(false);
        };
        let rows: Vec<BlockRow> = new.iter().map(BlockRow::new).collect();
        let contents = rows.iter().zip(new).map(|(row, block)| row.content(block));
        self.put_contents(op, contents.collect()).await?;
        self.lists.add(op, rows.iter().flat_map(places_of)).await?;
        let statements = self.statements_to_replace(moves, &ends, &rows);
        let is_done = match self.engine.decide_all(op, statements).await? {
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

    fn statements_to_replace(
        &self,
        moves: Option<i64>,
        ends: &[(i64, i64)],
        rows: &[BlockRow],
    ) -> Vec<(Cql, Vec<Option<CqlValue>>)> {
        let namespace = || Some(CqlValue::Text((&*self.namespace).into()));
        let number = |number: i64| Some(CqlValue::BigInt(number));
        let count = vec![
            number(moves.unwrap_or(0) + 1),
            namespace(),
            moves.map(CqlValue::BigInt),
        ];
        let remove = |(last_at, id): &(i64, i64)| {
            let values = vec![namespace(), number(*last_at), number(*id)];
            (REMOVE, values)
        };
        let enter = |row: &BlockRow| {
            let values = vec![
                namespace(),
                number(row.last_at.0),
                number(row.id),
                number(row.first_at.0),
                number(row.clicks),
                number(row.bytes),
            ];
            (ENTER, values)
        };
        let mut statements = vec![(COUNT_MOVE, count)];
        statements.extend(ends.iter().map(remove));
        statements.extend(rows.iter().map(enter));
        statements
    }

    /// Where the blocks stand: last times and ids. `None`: one of them is gone.
    async fn ends_of(&self, op: &'static str, ids: &[i64]) -> PortResult<Option<Vec<(i64, i64)>>> {
        let mut ends = Vec::with_capacity(ids.len());
        let mut after = BlockPlace::START;
        while ends.len() < ids.len() {
            let values = (
                &*self.namespace,
                after.last_at.0,
                after.id,
                i64::MIN,
                i32::try_from(ROWS_AT_ONCE).unwrap_or(i32::MAX),
            );
            let rows: Vec<CatalogueRow> = self.engine.rows(op, LIST, values).await?;
            let is_meant = |row: &&CatalogueRow| row.is_there() && ids.contains(&row.id);
            ends.extend(
                rows.iter()
                    .filter(is_meant)
                    .map(|row| (row.last_at, row.id)),
            );
            match rows.last() {
                Some(last) if rows.len() == ROWS_AT_ONCE => {
                    after = BlockPlace {
                        last_at: UnixMillis(last.last_at),
                        id: last.id,
                    };
                }
                _ => break,
            }
        }
        Ok((ends.len() == ids.len()).then_some(ends))
    }
}

/// Where a block is looked for: by its oldest click, and by its id while it is small.
fn places_of(block: &BlockRow) -> Vec<Place> {
    let last_at = sortable(block.last_at.0);
    let id = block.id.to_be_bytes();
    let first_at = sortable(block.first_at.0);
    let mut places = vec![Place {
        list: OLDEST.to_owned(),
        bucket: sortable(block.first_at.0.div_euclid(DAY)).to_vec(),
        position: [&first_at[..], &id, &last_at].concat(),
    }];
    if block.clicks < SMALL_CLICKS.into() {
        places.push(Place {
            list: SMALL.to_owned(),
            bucket: vec![0],
            position: [&id[..], &last_at].concat(),
        });
    }
    places
}

/// The last time and id of the block that stands there.
fn block_at(list: &str, position: &[u8]) -> Option<(i64, i64)> {
    let rest = match list {
        OLDEST => position.split_first_chunk::<8>()?.1,
        _ => position,
    };
    let (id, last_at) = rest.split_first_chunk::<8>()?;
    let last_at = last_at.try_into().ok()?;
    Some((of_sortable(last_at), i64::from_be_bytes(*id)))
}
