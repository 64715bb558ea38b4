use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{HeartbeatRecord, Heartbeats};
use curt_core::{Clock, PortResult, UnixMillis};

use super::locked;

/// Heartbeats between the tasks of one process.
pub struct MemoryHeartbeats {
    clock: Arc<dyn Clock>,
    records: Mutex<BTreeMap<Box<str>, Beat>>,
}

#[derive(Debug)]
struct Beat {
    text: Box<str>,
    until: UnixMillis,
}

impl MemoryHeartbeats {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            records: Mutex::default(),
        }
    }
}

impl fmt::Debug for MemoryHeartbeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHeartbeats")
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Heartbeats for MemoryHeartbeats {
    async fn beat(&self, instance: &str, text: &str, ttl: Duration) -> PortResult<()> {
        let beat = Beat {
            text: text.into(),
            until: self.clock.now().plus(ttl),
        };
        locked(&self.records).insert(instance.into(), beat);
        Ok(())
    }

    async fn remove(&self, instance: &str) -> PortResult<()> {
        locked(&self.records).remove(instance);
        Ok(())
    }

    async fn records(&self) -> PortResult<Vec<HeartbeatRecord>> {
        let now = self.clock.now();
        let mut records = locked(&self.records);
        records.retain(|_, beat| beat.until > now);
        let alive = records.iter().map(|(instance, beat)| HeartbeatRecord {
            instance: instance.clone(),
            text: beat.text.clone(),
        });
        Ok(alive.collect())
    }
}
