use std::collections::BTreeMap;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{AuditEntry, AuditLog};

use super::MemoryAccounts;
use crate::locked;

#[derive(Debug, Default)]
pub(super) struct AuditTable {
    by_number: BTreeMap<u64, AuditEntry>,
}

#[async_trait]
impl AuditLog for MemoryAccounts {
    async fn record(&self, entry: &AuditEntry) -> PortResult<()> {
        let entries = &mut locked(&self.tables).audit.by_number;
        let last = entries.last_key_value().map_or(0, |(number, _)| *number);
        entries.insert(last + 1, entry.clone());
        Ok(())
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> PortResult<Vec<(u64, AuditEntry)>> {
        let entries = &locked(&self.tables).audit.by_number;
        let older = entries.range(..before.unwrap_or(u64::MAX)).rev();
        let page = older.take(limit);
        Ok(page
            .map(|(number, entry)| (*number, entry.clone()))
            .collect())
    }
}
