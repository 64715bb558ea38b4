use std::sync::Arc;

use curt_core::ports::Cursor;
use curt_core::{ErrorKind, Key, PortResult};

use super::{CLAIM_TRIES_MAX, IdCodec, contended, failed};
use crate::settings::ID_BITS;

pub(super) const SEQUENCE_REGISTER: &str = "sequence/next";

/// Running numbers, a block at a time.
pub(super) struct Sequence {
    pub(super) cursor: Arc<dyn Cursor>,
    pub(super) codec: IdCodec,
    pub(super) block: u64,
}

impl Sequence {
    /// Moves the cursor past up to `count` numbers and returns where they start.
    async fn claim(&self, count: u64) -> PortResult<std::ops::Range<u64>> {
        for _ in 0..CLAIM_TRIES_MAX {
            let first = self.cursor.get(SEQUENCE_REGISTER).await?;
            let end = first.saturating_add(count).min(1 << ID_BITS);
            if first >= end {
                return Err(failed(
                    ErrorKind::Invalid,
                    "all 48-bit numbers are used: choose another key strategy",
                ));
            }
            if self.cursor.advance(SEQUENCE_REGISTER, first, end).await? {
                return Ok(first..end);
            }
        }
        Err(contended())
    }

    pub(super) async fn draw(&self, room: usize) -> PortResult<Vec<Key>> {
        // The seed first: a block must not be claimed and then not be written.
        self.codec.seed.get().await?;
        let block = self.claim(self.block.min(room as u64)).await?;
        self.codec.keys(block).await
    }
}
