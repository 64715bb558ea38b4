//! Served links in Redis: one string each, which a script replaces only by what is as new.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_adapter_kit::{CacheEntry, CacheEpoch};
use curt_core::ports::{CacheUsage, CachedLink, LinkCache};
use curt_core::{LinkId, PortResult, Revision};
use redis::Script;

use super::Redis;

/// Puts an entry in place unless what is there in the same epoch has a higher rank. Ranks are digits of one width. A link
/// that was looked for in another epoch was on its way when the cache was cleared: it may be old.
const PUT: &str = r"
local epoch = redis.call('GET', KEYS[2])
if not epoch then
    epoch = ARGV[1]
    redis.call('SET', KEYS[2], epoch)
end
if ARGV[4] ~= '' and ARGV[4] ~= epoch then
    return 0
end
local there = redis.call('GET', KEYS[1])
if there and string.sub(there, 1, 16) == epoch and string.sub(there, 17, 37) > string.sub(ARGV[2], 1, 21) then
    return 0
end
redis.call('SET', KEYS[1], epoch .. ARGV[2], 'PX', ARGV[3])
return 1
";
const EPOCH: &str = "cache:epoch";

pub(super) struct RedisLinkCache {
    redis: Arc<Redis>,
    epoch_name: String,
    put: Script,
    /// The epoch that the last look found; zero before that.
    seen: AtomicU64,
}

impl RedisLinkCache {
    pub(super) fn new(redis: Arc<Redis>) -> Self {
        Self {
            epoch_name: redis.name(EPOCH),
            redis,
            put: Script::new(PUT),
            seen: AtomicU64::new(0),
        }
    }

    fn name(&self, id: &LinkId) -> String {
        self.redis.name(&format!("cache:{id}"))
    }

    async fn put(
        &self,
        op: &'static str,
        id: &LinkId,
        entry: &CacheEntry,
        ttl: Duration,
    ) -> PortResult<()> {
        let mut script = self.put.prepare_invoke();
        script
            .key(self.name(id))
            .key(&self.epoch_name)
            .arg(new_epoch().to_text())
            .arg(entry.encode())
            .arg(ttl.as_millis().max(1).to_string())
            .arg(match (entry, self.seen.load(Ordering::Relaxed)) {
                (CacheEntry::Marker(_), _) | (_, 0) => String::new(),
                (CacheEntry::Link(_), seen) => CacheEpoch(seen).to_text(),
            });
        self.redis.run_script::<u64>(op, &script).await.map(drop)
    }
}

/// Never one that was there before: entries of that time may be.
fn new_epoch() -> CacheEpoch {
    CacheEpoch(rand::random::<u64>().max(1))
}

#[async_trait]
impl LinkCache for RedisLinkCache {
    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<CachedLink>>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("MGET");
        command.arg(&self.epoch_name);
        for id in ids {
            command.arg(self.name(id));
        }
        let found: Vec<Option<Vec<u8>>> = self.redis.run("read cached links", &command).await?;
        let mut found = found.into_iter();
        let epoch = found.next().flatten();
        let Some(epoch) = epoch.and_then(|text| CacheEpoch::parse(&text)) else {
            return Ok(vec![None; ids.len()]);
        };
        self.seen.store(epoch.0, Ordering::Relaxed);
        let read = |bytes: Option<Vec<u8>>| CacheEntry::decode_link(&bytes?, epoch);
        Ok(found.map(read).collect())
    }

    async fn set_if_newer(&self, id: &LinkId, entry: CachedLink, ttl: Duration) -> PortResult<()> {
        let entry = CacheEntry::Link(entry);
        self.put("cache a link", id, &entry, ttl).await
    }

    async fn invalidate(
        &self,
        id: &LinkId,
        revision: Option<Revision>,
        ttl: Duration,
    ) -> PortResult<()> {
        let marker = CacheEntry::Marker(revision);
        self.put("invalidate a cached link", id, &marker, ttl).await
    }

    async fn clear(&self) -> PortResult<()> {
        let mut command = redis::cmd("SET");
        command.arg(&self.epoch_name).arg(new_epoch().to_text());
        self.redis.run::<()>("clear the cache", &command).await?;
        self.seen.store(0, Ordering::Relaxed);
        Ok(())
    }

    async fn usage(&self) -> PortResult<CacheUsage> {
        let mut command = redis::cmd("INFO");
        command.arg("memory");
        let told: String = self.redis.run("read the memory's use", &command).await?;
        let field = |name: &str| {
            let line = told.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Ok(CacheUsage {
            bytes: field("used_memory:").unwrap_or(0),
            bytes_max: field("maxmemory:").unwrap_or(0),
        })
    }
}
