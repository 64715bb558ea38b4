//! Putting small blocks together: a server with few clicks writes many.

use curt_core::click_block::{BLOCK_CLICKS_MAX, Block, BlockWriter, NewBlock};
use curt_core::{ErrorKind, PortResult};

use super::{BlockEntry, ClickBlocks};
use crate::varint::Damaged;

/// Blocks of about the same size that are put together. A click is written again for every power of this.
const FAN_IN: usize = 8;
/// More small ones than there can be, seven of each size, with some to spare for other processes.
const BLOCKS_LISTED: usize = 256;

/// Puts small blocks together until there are few of each size.
pub async fn merge_small(blocks: &dyn ClickBlocks) -> PortResult<()> {
    loop {
        let small = blocks.list_small(BLOCKS_LISTED).await?;
        let Some(group) = group_of(&small) else {
            return Ok(());
        };
        let Some(read) = read_group(blocks, &group).await? else {
            continue;
        };
        match merge(&read) {
            Err(DamagedBlock(id)) => blocks.set_aside(id).await?,
            Ok(merged) => {
                if read.len() < group.len()
                    || !blocks.replace(&group, Vec::from_iter(merged)).await?
                {
                    // Another process does the same.
                    return Ok(());
                }
            }
        }
    }
}

/// `None`: one of them could not be read, and was set aside.
async fn read_group(
    blocks: &dyn ClickBlocks,
    group: &[i64],
) -> PortResult<Option<Vec<(i64, Vec<u8>)>>> {
    let mut read = Vec::with_capacity(group.len());
    for id in group {
        match blocks.read(&[*id]).await {
            Ok(block) => read.extend(block),
            Err(error) if error.kind == ErrorKind::Corrupt => {
                blocks.set_aside(*id).await?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(read))
}

/// The oldest blocks of the smallest size of which there are enough.
fn group_of(small: &[BlockEntry]) -> Option<Vec<i64>> {
    let size = |entry: &BlockEntry| entry.clicks.max(1).ilog2() / FAN_IN.ilog2();
    let mut sizes: Vec<u32> = small.iter().map(size).collect();
    sizes.sort_unstable();
    let group = sizes
        .chunk_by(|one, next| one == next)
        .find(|group| group.len() >= FAN_IN)?;
    let mut clicks = 0;
    let oldest = small
        .iter()
        .rev()
        .filter(|entry| size(entry) == group[0])
        .take_while(|entry| {
            clicks += entry.rows();
            clicks <= BLOCK_CLICKS_MAX
        });
    Some(oldest.map(|entry| entry.id).collect())
}

/// The block that is damaged.
struct DamagedBlock(i64);

fn merge(read: &[(i64, Vec<u8>)]) -> Result<Option<NewBlock>, DamagedBlock> {
    let mut merged = BlockWriter::default();
    for (id, bytes) in read {
        push_all(&mut merged, bytes).map_err(|Damaged| DamagedBlock(*id))?;
    }
    Ok(merged.finish())
}

fn push_all(merged: &mut BlockWriter, bytes: &[u8]) -> Result<(), Damaged> {
    let block = Block::read(bytes)?;
    let clicks = block.clicks()?;
    for (row, place) in block.places().into_iter().enumerate() {
        merged.push(place, &clicks.get(row)?);
    }
    Ok(())
}
