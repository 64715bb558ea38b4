//! Secrets of permutations: drawn once by whoever comes first, and the same for everybody after that.

use std::sync::Arc;

use curt_core::PortResult;
use curt_core::ports::Cursor;
use rand::Rng;
use tokio::sync::OnceCell;

/// A random number that is kept under a cursor's name. Read when first needed, so that a store that is away delays
/// keys and not the start.
pub(crate) struct Secret {
    cursor: Arc<dyn Cursor>,
    name: String,
    value: OnceCell<u64>,
}

impl Secret {
    pub(crate) fn new(cursor: Arc<dyn Cursor>, name: String) -> Self {
        Self {
            cursor,
            name,
            value: OnceCell::new(),
        }
    }

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
        self.cursor.get(&self.name).await
    }
}
