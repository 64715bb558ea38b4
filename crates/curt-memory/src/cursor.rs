use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::Cursor;

use super::locked;

#[derive(Debug, Default)]
pub struct MemoryCursor {
    numbers: Mutex<BTreeMap<Box<str>, u64>>,
}

impl MemoryCursor {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Cursor for MemoryCursor {
    async fn get(&self, name: &str) -> PortResult<u64> {
        Ok(locked(&self.numbers).get(name).copied().unwrap_or(0))
    }

    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool> {
        let mut numbers = locked(&self.numbers);
        if numbers.get(name).copied().unwrap_or(0) != seen {
            return Ok(false);
        }
        numbers.insert(name.into(), next);
        Ok(true)
    }
}
