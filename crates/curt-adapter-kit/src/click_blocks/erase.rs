//! Removing the clicks of one subject, wherever they are.

use std::collections::HashSet;

use curt_core::click_block::{Block, NewBlock, subjects};
use curt_core::ports::{ClickFilter, Erasure};
use curt_core::{ClickSubject, ErrorKind, PortError, PortResult, UnixMillis};

use super::purge::write_rows;
use super::{BlockEntry, BlockLister, BlockRange, ClickBlocks, RESTARTS_MAX, damaged_block};
use crate::off_runtime;
use crate::varint::Damaged;

const OP: &str = "erase clicks";
/// Blocks that are listed at a time.
const BLOCKS_LISTED: usize = 64;
/// Blocks that change in one transaction: reports that are being read begin again after each of them.
const BLOCKS_REPLACED: usize = 16;
const ALL_TIMES: BlockRange = BlockRange {
    from: UnixMillis(i64::MIN),
    before: UnixMillis(i64::MAX),
};

/// Removes the clicks of a subject, out of up to `blocks_max` blocks. Clicks that others move meanwhile are looked for
/// again.
pub async fn erase(
    blocks: &dyn ClickBlocks,
    subject: ClickSubject,
    blocks_max: usize,
) -> PortResult<Erasure> {
    let mut eraser = BlockEraser {
        blocks,
        subject,
        left: blocks_max.max(1),
        erased: 0,
        cleared: HashSet::new(),
        damage: None,
    };
    for _ in 0..RESTARTS_MAX {
        let Some(found) = eraser.find().await? else {
            continue;
        };
        match eraser.erase_from(&found).await? {
            Pass::Moved => {}
            Pass::Bounded => break,
            Pass::Complete => {
                return match eraser.damage {
                    Some(error) => Err(error),
                    None => Ok(Erasure {
                        erased: eraser.erased,
                        is_complete: true,
                    }),
                };
            }
        }
    }
    Ok(Erasure {
        erased: eraser.erased,
        is_complete: false,
    })
}

struct BlockEraser<'a> {
    blocks: &'a dyn ClickBlocks,
    subject: ClickSubject,
    /// How many blocks may still change.
    left: usize,
    erased: u64,
    /// Blocks that have no click of the subject, for all that can be read: a block never changes.
    cleared: HashSet<i64>,
    /// The first failure to read a block.
    damage: Option<PortError>,
}

/// How a pass over the blocks ended.
enum Pass {
    Complete,
    /// Some were gone: their clicks are elsewhere, or were removed.
    Moved,
    /// No more blocks may change.
    Bounded,
}

/// Blocks that are to be put in the place of others.
#[derive(Default)]
struct Replacement {
    old: Vec<i64>,
    new: Vec<NewBlock>,
    erased: u64,
}

impl BlockEraser<'_> {
    /// All blocks that may have clicks of the subject, at one moment. `None`: clicks were moved meanwhile.
    async fn find(&self) -> PortResult<Option<Vec<i64>>> {
        let wanted = subjects::hash_of(&self.subject);
        let may_have = |entry: &&BlockEntry| {
            wanted.is_none_or(|wanted| subjects::may_have(&entry.subjects, wanted))
        };
        let mut found = Vec::new();
        let mut lister = BlockLister::new(self.blocks, ALL_TIMES);
        while let Some(listed) = lister.next(BLOCKS_LISTED).await? {
            if listed.is_empty() {
                return Ok(Some(found));
            }
            found.extend(listed.iter().filter(may_have).map(|entry| entry.id));
        }
        Ok(None)
    }

    async fn erase_from(&mut self, found: &[i64]) -> PortResult<Pass> {
        let mut is_moved = false;
        let mut pending = Replacement::default();
        for id in found {
            if self.cleared.contains(id) {
                continue;
            }
            let Some(bytes) = self.read(*id).await? else {
                is_moved |= !self.cleared.contains(id);
                continue;
            };
            self.rewrite(*id, bytes, &mut pending).await?;
            if pending.old.len() >= BLOCKS_REPLACED.min(self.left) {
                is_moved |= !self.replace(&mut pending).await?;
            }
            if self.left == 0 {
                return Ok(Pass::Bounded);
            }
        }
        is_moved |= !self.replace(&mut pending).await?;
        Ok(if is_moved {
            Pass::Moved
        } else {
            Pass::Complete
        })
    }

    /// `None`: it is gone, or cannot be read and is among the cleared ones.
    async fn read(&mut self, id: i64) -> PortResult<Option<Vec<u8>>> {
        match self.blocks.read(&[id]).await {
            Ok(read) => Ok(read.into_iter().next().map(|(_, bytes)| bytes)),
            Err(error) if error.kind == ErrorKind::Corrupt => {
                self.clear_damaged(id, error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the block without the subject's clicks to what is to be stored.
    async fn rewrite(
        &mut self,
        id: i64,
        bytes: Vec<u8>,
        pending: &mut Replacement,
    ) -> PortResult<()> {
        let subject = self.subject.clone();
        let backend = self.blocks.backend();
        let rewritten = off_runtime(backend, OP, move || Ok(without(&bytes, &subject))).await?;
        match rewritten {
            Ok((0, _)) => drop(self.cleared.insert(id)),
            Ok((erased, rest)) => {
                pending.old.push(id);
                pending.new.extend(rest);
                pending.erased += erased;
            }
            Err(damaged) => self.clear_damaged(id, damaged_block(backend, OP, id, damaged)),
        }
        Ok(())
    }

    fn clear_damaged(&mut self, id: i64, error: PortError) {
        self.cleared.insert(id);
        self.damage.get_or_insert(error);
    }

    /// Says whether the blocks were still there.
    async fn replace(&mut self, pending: &mut Replacement) -> PortResult<bool> {
        let Replacement { old, new, erased } = std::mem::take(pending);
        if old.is_empty() {
            return Ok(true);
        }
        let is_replaced = self.blocks.replace(&old, new).await?;
        if is_replaced {
            self.left -= old.len();
            self.erased += erased;
        }
        Ok(is_replaced)
    }
}

/// How many clicks of the subject the block has, and the block without them.
fn without(bytes: &[u8], subject: &ClickSubject) -> Result<(u64, Option<NewBlock>), Damaged> {
    let block = Block::read(bytes)?;
    let BlockRange { from, before } = ALL_TIMES;
    let is_erased = block.matches(subject, &ClickFilter::default(), from..before)?;
    let erased = is_erased.iter().filter(|is_erased| **is_erased).count();
    if erased == 0 {
        return Ok((0, None));
    }
    let rest = write_rows(&block, |row| !is_erased[row])?;
    Ok((erased as u64, rest))
}
