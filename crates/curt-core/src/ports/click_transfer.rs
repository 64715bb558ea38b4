use std::hash::{Hash, Hasher};

use super::{Replacement, Salt, StreamId, StreamPartition, Transferred};
use crate::click::Day;
use crate::click_block::NewBlock;

/// Something that a clicks database keeps, in the form in which all engines store it.
///
/// Runs and blocks have no name of their own, and two may be the same. So they are numbered in the order in which the source
/// exports them, and imported like windows of a stream: each once (C-1). A source must be at rest, also between an
/// export that was broken off and its continuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClickItem {
    /// What was counted on a day.
    Run {
        place: CopyPlace,
        run: ClickRun,
    },
    /// Single clicks.
    Block {
        place: CopyPlace,
        block: NewBlock,
    },
    Salt {
        day: Day,
        salt: Salt,
    },
    /// Up to where a partition of a stream is counted.
    Offset {
        partition: StreamPartition,
        next: u64,
    },
}

/// The partition of a copy, as if it were a stream: no stream has one with this number. Its offset is not copied further.
pub const COPY_PARTITION: u32 = u32::MAX;

/// Where a run or block stands in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPlace {
    /// Of the copy, as if it were a stream.
    pub copy: StreamId,
    pub number: u64,
}

/// A run of counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClickRun {
    pub day: Day,
    /// Subjects that were counted.
    pub subjects: u32,
    /// First key and content of each.
    pub chunks: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Without places, which differ between databases that hold the same.
impl Hash for ClickItem {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Run { run, .. } => run.hash(state),
            Self::Block { block, .. } => block.hash(state),
            Self::Salt { day, salt } => (day, salt).hash(state),
            Self::Offset { partition, next } => (partition, next).hash(state),
        }
    }
}

impl Transferred for ClickItem {
    /// Runs of one day share a name, and so do blocks of one time.
    fn name(&self) -> Box<str> {
        match self {
            Self::Run { run, .. } => format!("counts of day {}", run.day.number()),
            Self::Block { block, .. } => {
                format!("clicks from {} to {}", block.first_at.0, block.last_at.0)
            }
            Self::Salt { day, .. } => format!("salt of day {}", day.number()),
            Self::Offset { partition, .. } => {
                format!(
                    "stream {:016x}, partition {}",
                    partition.stream.0, partition.number
                )
            }
        }
        .into()
    }

    fn replaces(&self, there: &Self) -> Replacement {
        match (self, there) {
            (one, same) if one == same => Replacement::Same,
            (Self::Offset { next: new, .. }, Self::Offset { next: old, .. }) if new > old => {
                Replacement::Write
            }
            _ => Replacement::Outdated,
        }
    }
}
