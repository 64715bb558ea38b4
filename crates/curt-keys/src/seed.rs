use std::sync::Arc;

use curt_core::PortResult;
use curt_core::ports::Cursor;
use rand::Rng;
use tokio::sync::OnceCell;

/// The random seed of a format-preserving permutation: drawn once, by the process that comes first, and the same for
/// all after that.
///
/// It is kept under a cursor's name, beside the position of the numbers that it permutes, for three reasons. The first
/// process must win by a compare-and-set that survives everything, which is what a cursor is. Seed and position must be
/// lost or restored together: a new seed over an old position, or the reverse, would hand out keys again. And every
/// strategy that permutes has a cursor already. It is no credential: with it the next generated keys can be guessed,
/// and a reader of the cursors can read the links as well.
pub(crate) struct PermutationSeed {
    cursor: Arc<dyn Cursor>,
    name: String,
    value: OnceCell<u64>,
}

impl PermutationSeed {
    pub(crate) fn new(cursor: Arc<dyn Cursor>, name: String) -> Self {
        Self {
            cursor,
            name,
            value: OnceCell::new(),
        }
    }

    /// Reads the seed when it is first needed, so that a store that is away delays keys and not the start.
    pub(crate) async fn get(&self) -> PortResult<u64> {
        let value = self.value.get_or_try_init(|| self.load()).await?;
        Ok(*value)
    }

    async fn load(&self) -> PortResult<u64> {
        let stored = self.cursor.get(&self.name).await?;
        if stored != 0 {
            return Ok(stored);
        }
        // Zero means absent, and the sign bit would not fit where stores have signed numbers only.
        let fresh = (rand::rng().next_u64() >> 1).max(1);
        if self.cursor.advance(&self.name, 0, fresh).await? {
            return Ok(fresh);
        }
        // Another process was quicker, and its seed is the one.
        self.cursor.get(&self.name).await
    }
}
