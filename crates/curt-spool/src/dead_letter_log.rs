use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::dead_letters::DeadLetterFile;

/// Counts the records that cannot be read, by reason, and notes which they were.
#[derive(Debug)]
pub(super) struct DeadLetterLog {
    letters: DeadLetterFile,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl DeadLetterLog {
    pub(super) fn new(letters: DeadLetterFile) -> Self {
        Self {
            letters,
            counts: Mutex::default(),
        }
    }

    pub(super) fn report(&self, partition: u32, offset: u64, reason: &'static str, bytes: &[u8]) {
        *self
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(reason)
            .or_default() += 1;
        self.letters.keep(partition, offset, reason, bytes);
    }

    /// Whether what cannot be read stays where a person can look at it.
    pub(super) fn keeps_records(&self) -> bool {
        self.letters.keeps_records
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.counts.lock();
        counts.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
