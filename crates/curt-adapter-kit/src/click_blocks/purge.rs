//! Removing the oldest clicks.

use curt_core::click_block::{Block, BlockWriter, NewBlock};
use curt_core::{PortResult, UnixMillis};

use super::{BlockEntry, ClickBlocks, damaged_block};
use crate::varint::Damaged;

/// Blocks that are looked at together.
const BLOCKS_LISTED: usize = 16;

/// Removes up to `limit` clicks that are older than `before`, and says how many.
pub async fn purge(blocks: &dyn ClickBlocks, before: UnixMillis, limit: usize) -> PortResult<u64> {
    let mut gone = 0;
    loop {
        let listed = blocks.list_oldest(BLOCKS_LISTED).await?;
        let old = listed.iter().filter(|entry| entry.first_at < before);
        let mut removed = 0;
        for entry in old {
            let left = limit - gone - removed;
            if left == 0 {
                break;
            }
            removed += match entry.last_at < before && entry.rows() <= left {
                true => remove_whole(blocks, entry).await?,
                false => remove_oldest(blocks, entry, before, left).await?,
            };
        }
        gone += removed;
        if removed == 0 || gone == limit {
            return Ok(gone as u64);
        }
    }
}

/// Removes up to `limit` clicks, oldest first, while all of them take more than `bytes_max`, and says how many.
pub async fn trim(blocks: &dyn ClickBlocks, bytes_max: u64, limit: usize) -> PortResult<u64> {
    let mut gone = 0;
    while gone < limit {
        let excess = blocks.sum_bytes().await?.saturating_sub(bytes_max);
        let oldest = blocks.list_oldest(1).await?;
        let Some(entry) = oldest.first().filter(|_| excess > 0) else {
            break;
        };
        let left = limit - gone;
        let removed = if excess >= entry.bytes.into() && entry.rows() <= left {
            remove_whole(blocks, entry).await?
        } else {
            // As many as have the excess on the average; what is still too much goes in the next round.
            let per_click = u64::from(entry.bytes / entry.clicks.max(1)).max(1);
            let count = usize::try_from(excess.div_ceil(per_click)).unwrap_or(usize::MAX);
            let count = count.min(left);
            remove_oldest(blocks, entry, UnixMillis(i64::MAX), count).await?
        };
        if removed == 0 {
            break;
        }
        gone += removed;
    }
    Ok(gone as u64)
}

/// Says how many clicks went: none if the block was changed by somebody else meanwhile.
async fn remove_whole(blocks: &dyn ClickBlocks, entry: &BlockEntry) -> PortResult<usize> {
    let is_removed = blocks.replace(&[entry.id], Vec::new()).await?;
    Ok(if is_removed { entry.rows() } else { 0 })
}

/// Writes the block again without its oldest clicks.
async fn remove_oldest(
    blocks: &dyn ClickBlocks,
    entry: &BlockEntry,
    before: UnixMillis,
    limit: usize,
) -> PortResult<usize> {
    let read = blocks.read(&[entry.id]).await?;
    let Some((_, bytes)) = read.first() else {
        return Ok(0);
    };
    let backend = blocks.backend();
    let (removed, rest) = without_oldest(bytes, before, limit)
        .map_err(|damaged| damaged_block(backend, "purge clicks", entry.id, damaged))?;
    match removed > 0 && blocks.replace(&[entry.id], Vec::from_iter(rest)).await? {
        true => Ok(removed),
        false => Ok(0),
    }
}

fn without_oldest(
    bytes: &[u8],
    before: UnixMillis,
    limit: usize,
) -> Result<(usize, Option<NewBlock>), Damaged> {
    let block = Block::read(bytes)?;
    let places = block.places();
    let mut oldest: Vec<usize> = (0..places.len())
        .filter(|row| places[*row].at < before)
        .collect();
    oldest.sort_unstable_by_key(|row| places[*row]);
    oldest.truncate(limit);
    let mut stays = vec![true; places.len()];
    for row in &oldest {
        stays[*row] = false;
    }
    Ok((oldest.len(), write_rows(&block, |row| stays[row])?))
}

/// The block with some of its rows. `None`: none stays.
pub(super) fn write_rows(
    block: &Block<'_>,
    stays: impl Fn(usize) -> bool,
) -> Result<Option<NewBlock>, Damaged> {
    let clicks = block.clicks()?;
    let mut rest = BlockWriter::default();
    let rows = block.places().into_iter().enumerate();
    for (row, place) in rows.filter(|(row, _)| stays(*row)) {
        rest.push(place, &clicks.get(row)?);
    }
    Ok(rest.finish())
}
