//! The most frequent values among clicks that have others in common: a scan of the columns that are asked about.

use std::collections::HashMap;

use curt_core::PortResult;
use curt_core::click::OTHER;
use curt_core::click_block::{Block, subjects};
use curt_core::limits::VALUES_RANKED_MAX;
use curt_core::ports::{ClickRanking, Top};

use super::{
    BlockEntry, BlockLister, BlockRange, ClickBlocks, RESTARTS_MAX, damaged_block, moved_too_often,
};
use crate::off_runtime;
use crate::varint::Damaged;

const OP: &str = "rank clicks";
/// Blocks that are read and counted at a time, on a thread that may be busy for so long.
const BLOCKS_READ: usize = 16;

/// Counts per value.
type Counts = HashMap<Box<str>, u64>;

pub async fn rank(blocks: &dyn ClickBlocks, ranking: &ClickRanking) -> PortResult<Top> {
    for _ in 0..RESTARTS_MAX {
        if let Some(counts) = count_all(blocks, ranking).await? {
            return Ok(Top::of(counts, ranking.limit));
        }
    }
    Err(moved_too_often(blocks, OP))
}

/// `None`: clicks were moved meanwhile.
async fn count_all(blocks: &dyn ClickBlocks, ranking: &ClickRanking) -> PortResult<Option<Counts>> {
    let range = BlockRange {
        from: ranking.from,
        before: ranking.before,
    };
    let wanted = subjects::hash_of(&ranking.subject);
    let may_have = |entry: &&BlockEntry| {
        wanted.is_none_or(|wanted| subjects::may_have(&entry.subjects, wanted))
    };
    let mut counts = Counts::new();
    let mut lister = BlockLister::new(blocks, range);
    while let Some(listed) = lister.next(BLOCKS_READ).await? {
        if listed.is_empty() {
            return Ok(Some(counts));
        }
        let ids: Vec<i64> = listed
            .iter()
            .filter(may_have)
            .map(|entry| entry.id)
            .collect();
        let read = blocks.read(&ids).await?;
        if read.len() < ids.len() {
            return Ok(None);
        }
        let (ranking, backend) = (ranking.clone(), blocks.backend());
        counts = off_runtime(backend, OP, move || {
            for (id, bytes) in &read {
                count_block(&mut counts, bytes, &ranking)
                    .map_err(|damaged| damaged_block(backend, OP, *id, damaged))?;
            }
            Ok(counts)
        })
        .await?;
    }
    Ok(None)
}

fn count_block(counts: &mut Counts, bytes: &[u8], ranking: &ClickRanking) -> Result<(), Damaged> {
    let block = Block::read(bytes)?;
    let range = ranking.from..ranking.before;
    let rows = block.matches(&ranking.subject, &ranking.filter, range)?;
    for (value, count) in block.count_values(ranking.dimension, &rows)? {
        let value = std::str::from_utf8(value).map_err(|_| Damaged)?;
        let value = match counts.len() < VALUES_RANKED_MAX || counts.contains_key(value) {
            true => value,
            false => OTHER,
        };
        match counts.get_mut(value) {
            Some(sum) => *sum += count,
            None => drop(counts.insert(value.into(), count)),
        }
    }
    Ok(())
}
