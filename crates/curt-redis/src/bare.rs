use std::sync::Arc;

use async_trait::async_trait;
use curt_core::{Key, PortResult};

use super::Redis;
use curt_adapter_kit::bare::BareKeys;

/// Names that a scan looks at with each step.
const SCANNED_AT_ONCE: usize = 1_000;

/// A list, pushed to and popped from without a script.
pub(super) struct RedisBareKeys {
    redis: Arc<Redis>,
    list: String,
    /// Names of the pool shard that is measured beside it.
    pool: String,
}

impl RedisBareKeys {
    pub(super) fn new(redis: Arc<Redis>, pool: String) -> Self {
        Self {
            list: redis.name("bare_keys"),
            redis,
            pool,
        }
    }

    /// The pool remembers its batches for long: nobody asks for those of a measurement.
    async fn forget_batches(&self) -> PortResult<()> {
        const OP: &str = "remove what was measured with";
        let mut at = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(at).arg("MATCH").arg(format!("{}*", self.pool));
            scan.arg("COUNT").arg(SCANNED_AT_ONCE);
            let (next, found): (u64, Vec<String>) = self.redis.run(OP, &scan).await?;
            if !found.is_empty() {
                let mut remove = redis::cmd("UNLINK");
                remove.arg(found);
                self.redis.run::<u64>(OP, &remove).await?;
            }
            if next == 0 {
                return Ok(());
            }
            at = next;
        }
    }
}

#[async_trait]
impl BareKeys for RedisBareKeys {
    async fn put(&self, keys: &[Key]) -> PortResult<()> {
        let mut push = redis::cmd("RPUSH");
        push.arg(&self.list);
        for key in keys {
            push.arg(key.as_str());
        }
        self.redis.run::<u64>("push keys", &push).await.map(drop)
    }

    async fn take(&self, count: usize) -> PortResult<u64> {
        let mut pop = redis::cmd("LPOP");
        pop.arg(&self.list).arg(count);
        let popped: Option<Vec<String>> = self.redis.run("pop keys", &pop).await?;
        Ok(popped.map_or(0, |keys| keys.len() as u64))
    }

    async fn remove(&self) -> PortResult<()> {
        let mut remove = redis::cmd("UNLINK");
        remove.arg(&self.list);
        self.redis.run::<u64>("remove a list", &remove).await?;
        self.forget_batches().await
    }
}
