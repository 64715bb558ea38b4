use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{MapNote, MapNotes, ShardMaps};
use curt_core::{PortResult, ShardMap};
use tokio::sync::watch;

use crate::locked;

#[derive(Debug, Default)]
pub struct MemoryShardMaps {
    newest: watch::Sender<ShardMap>,
    notes: Mutex<HashMap<Box<str>, MapNote>>,
}

impl MemoryShardMaps {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl ShardMaps for MemoryShardMaps {
    async fn load(&self) -> PortResult<ShardMap> {
        Ok(self.newest.borrow().clone())
    }

    async fn watch(&self, seen: u64, wait: Duration) -> PortResult<Option<ShardMap>> {
        let mut newest = self.newest.subscribe();
        let newer = newest.wait_for(|map| map.version() > seen);
        let newer = tokio::time::timeout(wait, newer).await;
        // The sender lives as long as this call.
        Ok(newer.ok().and_then(Result::ok).map(|map| map.clone()))
    }

    async fn advance(&self, next: &ShardMap) -> PortResult<bool> {
        Ok(self.newest.send_if_modified(|newest| {
            let follows = newest.version() + 1 == next.version();
            if follows {
                newest.clone_from(next);
            }
            follows
        }))
    }
}

#[async_trait]
impl MapNotes for MemoryShardMaps {
    async fn note(&self, name: &str) -> PortResult<MapNote> {
        let notes = locked(&self.notes);
        Ok(notes.get(name).cloned().unwrap_or_default())
    }

    async fn put_note(&self, name: &str, note: &MapNote) -> PortResult<bool> {
        let mut notes = locked(&self.notes);
        let stored = notes.entry(name.into()).or_default();
        let follows = stored.version + 1 == note.version;
        if follows {
            stored.clone_from(note);
        }
        Ok(follows)
    }
}
