//! Compares the keys themselves where counts cannot tell: which are in two stages.
//!
//! Pools are read, and links are looked up key by key. What is in a buffer only its process knows: the audit asks by a
//! record in the registry of instances, and each answers by one with the keys of its buffer. The cost is that of
//! reading all pools once, and one look-up of a link for each key in pools and buffers.

use std::collections::HashMap;
use std::time::Duration;

use curt_core::limits::KEY_BATCH_MAX;
use curt_core::link::KeyOrigin;
use curt_core::ports::LinkStore;
use curt_core::{DomainId, Key, LinkId, PortResult};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rand::Rng as _;
use tokio::time::Instant;

use crate::heartbeat::{AuditAnswer, Record, Registry};
use crate::ports::KeyPorts;

/// How long instances have to tell what is in their buffers: they read the registry every five seconds.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Look-ups under way at a time.
const LOOKUPS: usize = 32;

/// Keys that are in two stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// In a pool or a buffer, and on a link.
    pub on_links: u64,
    /// In a pool and a buffer, or twice in one of them.
    pub waiting_twice: u64,
}

impl Duplicates {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.on_links + self.waiting_twice
    }
}

/// What an audit has found.
#[derive(Clone, Debug, Default)]
pub struct KeyAudit {
    pub duplicates: Duplicates,
    /// Keys moved meanwhile, so that some may have been met twice or not at all.
    pub has_moved: bool,
    /// Instances that did not tell what is in their buffers, as they describe themselves.
    pub silent: Vec<Box<str>>,
}

impl KeyAudit {
    /// Compares the keys of all pools, buffers and links.
    pub async fn run(ports: &KeyPorts) -> PortResult<Self> {
        let links = &ports.links()?.store;
        let before = MovementCounters::read(ports).await?;
        let (buffers, silent) = collect_buffered_keys(ports).await?;
        let mut waiting: HashMap<Key, u64> = HashMap::new();
        for key in buffers {
            *waiting.entry(key).or_default() += 1;
        }
        for pool in &ports.pools {
            let mut first = 0;
            loop {
                let keys = pool.peek(first, KEY_BATCH_MAX).await?;
                if keys.is_empty() {
                    break;
                }
                first += keys.len() as u64;
                for key in keys {
                    *waiting.entry(key).or_default() += 1;
                }
            }
        }
        let places: u64 = waiting.values().sum();
        let distinct = waiting.len() as u64;
        let on_links = count_on_links(&**links, waiting.into_keys()).await?;
        Ok(Self {
            duplicates: Duplicates {
                on_links,
                waiting_twice: places - distinct,
            },
            has_moved: MovementCounters::read(ports).await? != before,
            silent,
        })
    }

    /// Whether the numbers are those of every key.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.has_moved && self.silent.is_empty()
    }
}

/// Numbers that change when a key moves.
#[derive(PartialEq, Eq)]
struct MovementCounters {
    depths: Vec<u64>,
    buffered: Vec<u64>,
    created: u64,
}

impl MovementCounters {
    async fn read(ports: &KeyPorts) -> PortResult<Self> {
        let mut depths = Vec::with_capacity(ports.pools.len());
        for pool in &ports.pools {
            depths.push(pool.depth().await?);
        }
        let instances = Registry::read(&*ports.heartbeats).await?.instances;
        let counts = ports.links()?.totals.counts().await?;
        Ok(Self {
            depths,
            buffered: instances.iter().map(|one| one.holdings.buffered).collect(),
            created: counts.created_from(KeyOrigin::Ledger),
        })
    }
}

/// The keys in the buffers of all instances, and the instances that did not answer.
async fn collect_buffered_keys(ports: &KeyPorts) -> PortResult<(Vec<Key>, Vec<Box<str>>)> {
    let audit: Box<str> = format!("{:016x}", rand::rng().next_u64()).into();
    let request = Record::AuditRequest {
        audit: audit.clone(),
    };
    let name = format!("audit-{audit}");
    let end = Instant::now() + ANSWER_TIME_MAX;
    loop {
        // Repeated, because its record runs out like any other.
        request
            .write(&*ports.heartbeats, &name, ANSWER_TIME_MAX)
            .await?;
        let mut seen = Registry::read(&*ports.heartbeats).await?;
        seen.answers.retain(|answer| answer.answers(&audit));
        let answers = &seen.answers;
        let mut silent = seen.instances;
        silent.retain(|instance| {
            let has_answered = answers.iter().any(|a| a.instance == instance.name);
            instance.holdings.buffered > 0 && !has_answered
        });
        if silent.is_empty() || Instant::now() >= end {
            ports.heartbeats.remove(&name).await?;
            let keys = seen.answers.into_iter().flat_map(AuditAnswer::into_keys);
            let silent = silent.into_iter().map(|instance| instance.who);
            return Ok((keys.collect(), silent.collect()));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// How many of the keys are on a link, or its tombstone, that counts as one of the supply's.
async fn count_on_links(links: &dyn LinkStore, keys: impl Iterator<Item = Key>) -> PortResult<u64> {
    stream::iter(keys)
        .map(|key| async move {
            let found = links.get(&LinkId::new(DomainId::DEFAULT, key)).await?;
            let is_ours = found.is_some_and(|link| link.origin == KeyOrigin::Ledger);
            Ok(u64::from(is_ours))
        })
        .buffer_unordered(LOOKUPS)
        .try_fold(0, |sum, one| async move { Ok(sum + one) })
        .await
}
