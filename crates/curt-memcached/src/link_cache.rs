//! Served links in Memcached: one item each, which is replaced only by what is as new.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_adapter_kit::{CacheEntry, CacheEpoch};
use curt_core::ports::{CacheUsage, CachedLink, LinkCache};
use curt_core::{ErrorKind, LinkId, PortError, PortResult, Revision};

use super::protocol::{Reply, is_name};
use super::{BACKEND, Memcached};

/// Attempts to replace an item that others replace, too.
const ROUNDS_MAX: usize = 64;
/// Longer times Memcached takes for dates.
const TTL_SECONDS_MAX: u64 = 30 * 24 * 3_600;
const EPOCH: &str = "epoch";

pub(crate) struct MemcachedLinkCache {
    memcached: Arc<Memcached>,
    epoch_name: String,
}

/// An item as it was found, to be replaced.
struct Found {
    bytes: Vec<u8>,
    version: u64,
}

impl MemcachedLinkCache {
    pub(crate) fn new(memcached: Arc<Memcached>) -> Self {
        Self {
            epoch_name: format!("{}{EPOCH}", memcached.prefix),
            memcached,
        }
    }

    fn name(&self, op: &'static str, id: &LinkId) -> PortResult<String> {
        let name = format!("{}{id}", self.memcached.prefix);
        match is_name(&name) {
            true => Ok(name),
            false => {
                let detail = format!("{name:?} cannot be a key");
                Err(PortError::new(ErrorKind::Invalid, BACKEND, op, detail))
            }
        }
    }

    /// Reads the epoch and the items in one round trip. Without an epoch there is nothing.
    async fn read(
        &self,
        op: &'static str,
        names: &[String],
    ) -> PortResult<(Option<CacheEpoch>, Vec<Option<Found>>)> {
        let mut commands = format!("mg {} v\r\n", self.epoch_name);
        for name in names {
            commands += &format!("mg {name} v c\r\n");
        }
        let answers = names.len() + 1;
        let replies = self
            .memcached
            .run(op, commands.into_bytes(), answers)
            .await?;
        let mut found = replies.into_iter().map(|reply| match reply {
            Reply::Item { bytes, version } => Some(Found { bytes, version }),
            _ => None,
        });
        let epoch = found.next().flatten();
        let epoch = epoch.and_then(|found| CacheEpoch::parse(&found.bytes));
        Ok((epoch, found.collect()))
    }

    async fn write(&self, op: &'static str, command: Vec<u8>) -> PortResult<bool> {
        let replies = self.memcached.run(op, command, 1).await?;
        match replies.into_iter().next() {
            Some(Reply::Done) => Ok(true),
            Some(Reply::Error(detail)) => {
                let kind = ErrorKind::Unavailable;
                Err(PortError::new(kind, BACKEND, op, detail))
            }
            _ => Ok(false),
        }
    }

    /// Begins the first epoch, unless somebody else does.
    async fn begin_epoch(&self, op: &'static str) -> PortResult<()> {
        let command = set(&self.epoch_name, "ME", new_epoch().to_text().as_bytes());
        self.write(op, command).await.map(drop)
    }

    async fn put(
        &self,
        op: &'static str,
        id: &LinkId,
        entry: &CacheEntry,
        ttl: Duration,
    ) -> PortResult<()> {
        let name = self.name(op, id)?;
        let names = [name.clone()];
        for _ in 0..ROUNDS_MAX {
            let (epoch, found) = self.read(op, &names).await?;
            let Some(epoch) = epoch else {
                self.begin_epoch(op).await?;
                continue;
            };
            let found = found.into_iter().next().flatten();
            let condition = match &found {
                Some(found) if entry.is_beaten_by(&found.bytes, epoch) => return Ok(()),
                Some(found) => format!("C{}", found.version),
                None => "ME".to_owned(),
            };
            let bytes = [epoch.to_text().into_bytes(), entry.encode()].concat();
            let flags = format!("{condition} T{}", seconds(ttl));
            if self.write(op, set(&name, &flags, &bytes)).await? {
                return Ok(());
            }
        }
        let detail = "the entry changes faster than it can be replaced";
        Err(PortError::new(ErrorKind::Throttled, BACKEND, op, detail))
    }
}

fn set(name: &str, flags: &str, bytes: &[u8]) -> Vec<u8> {
    let mut command = format!("ms {name} {} {flags}\r\n", bytes.len()).into_bytes();
    command.extend(bytes);
    command.extend(b"\r\n");
    command
}

/// Never one that was there before: entries of that time may be.
fn new_epoch() -> CacheEpoch {
    CacheEpoch(rand::random())
}

/// Memcached counts whole seconds, the current one too: one more, so that nothing ends early.
fn seconds(ttl: Duration) -> u64 {
    let whole = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    (whole + 1).min(TTL_SECONDS_MAX)
}

#[async_trait]
impl LinkCache for MemcachedLinkCache {
    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<CachedLink>>> {
        const OP: &str = "read cached links";
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let names: PortResult<Vec<String>> = ids.iter().map(|id| self.name(OP, id)).collect();
        let (epoch, found) = self.read(OP, &names?).await?;
        let read = |found: Option<Found>| CacheEntry::decode_link(&found?.bytes, epoch?);
        Ok(found.into_iter().map(read).collect())
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
        const OP: &str = "clear the cache";
        let command = set(&self.epoch_name, "T0", new_epoch().to_text().as_bytes());
        match self.write(OP, command).await? {
            true => Ok(()),
            false => {
                let detail = "the epoch was not taken";
                Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail))
            }
        }
    }

    async fn usage(&self) -> PortResult<CacheUsage> {
        let told = self
            .memcached
            .run("read the memory's use", b"stats\r\n".to_vec(), 1)
            .await?;
        let field = |name: &str| {
            told.iter().find_map(|reply| match reply {
                Reply::Stat(line) => line.strip_prefix(name)?.trim().parse().ok(),
                _ => None,
            })
        };
        Ok(CacheUsage {
            bytes: field("STAT bytes ").unwrap_or(0),
            bytes_max: field("STAT limit_maxbytes ").unwrap_or(0),
        })
    }
}
