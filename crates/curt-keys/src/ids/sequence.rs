use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::Cursor;
use curt_core::{ErrorKind, Key, PortResult};

use super::{CLAIM_TRIES_MAX, IdCodec, contended, failed};
use crate::buffer::Feed;
use crate::settings::ID_BITS;

pub(crate) const SEQUENCE_REGISTER: &str = "sequence/next";

/// Running numbers, a block at a time.
pub(crate) struct Sequence {
    cursor: Arc<dyn Cursor>,
    codec: IdCodec,
    block: u64,
}

impl Sequence {
    pub(crate) fn new(cursor: Arc<dyn Cursor>, codec: IdCodec, block: u64) -> Self {
        Self {
            cursor,
            codec,
            block,
        }
    }

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
}

#[async_trait]
impl Feed for Sequence {
    async fn draw(&self, room: usize) -> PortResult<Vec<Key>> {
        // The secret first: a block must not be claimed and then not be written.
        self.codec.secret.get().await?;
        let block = self.claim(self.block.min(room as u64)).await?;
        self.codec.keys(block).await
    }
}
