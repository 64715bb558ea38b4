use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{Lease, Leases};
use curt_core::{Clock, PortResult, SystemClock, UnixMillis};

use super::locked;

/// Leases between the tasks of one process. Leases run out by the injected clock.
pub struct MemoryLeases {
    holder: Box<str>,
    clock: Arc<dyn Clock>,
    names: Arc<Mutex<BTreeMap<Box<str>, Name>>>,
}

/// A lease that was held at least once. Kept when free, so that fencing tokens go on growing.
#[derive(Debug)]
struct Name {
    fencing_token: u64,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    token: Box<str>,
    holder: Box<str>,
    until: UnixMillis,
}

impl MemoryLeases {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            holder: "this process".into(),
            clock,
            names: Arc::default(),
        }
    }

    /// The same leases as seen by another holder, who describes itself as `holder`.
    #[must_use]
    pub fn for_holder(&self, holder: &str) -> Self {
        Self {
            holder: holder.into(),
            clock: Arc::clone(&self.clock),
            names: Arc::clone(&self.names),
        }
    }
}

impl Default for MemoryLeases {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl fmt::Debug for MemoryLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLeases")
            .field("holder", &self.holder)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Name {
    /// Returns the holder at `now`.
    fn held(&mut self, now: UnixMillis) -> Option<&mut Held> {
        self.held.as_mut().filter(|held| held.until > now)
    }

    fn held_by(&mut self, lease: &Lease, now: UnixMillis) -> Option<&mut Held> {
        self.held(now).filter(|held| held.token == lease.token)
    }
}

#[async_trait]
impl Leases for MemoryLeases {
    async fn acquire(&self, name: &str, ttl: Duration) -> PortResult<Option<Lease>> {
        let now = self.clock.now();
        let mut names = locked(&self.names);
        let entry = names.entry(name.into()).or_insert(Name {
            fencing_token: 0,
            held: None,
        });
        if entry.held(now).is_some() {
            return Ok(None);
        }
        // Goes on growing over restarts, for stores that remember fencing tokens.
        entry.fencing_token = (entry.fencing_token + 1).max(now.0.unsigned_abs());
        let token: Box<str> = format!("{name}#{}", entry.fencing_token).into();
        entry.held = Some(Held {
            token: token.clone(),
            holder: self.holder.clone(),
            until: now.plus(ttl),
        });
        Ok(Some(Lease {
            name: name.into(),
            token,
            fencing_token: entry.fencing_token,
        }))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> PortResult<bool> {
        let now = self.clock.now();
        let mut names = locked(&self.names);
        let held = names
            .get_mut(&lease.name)
            .and_then(|name| name.held_by(lease, now));
        Ok(held.map(|held| held.until = now.plus(ttl)).is_some())
    }

    async fn release(&self, lease: Lease) -> PortResult<()> {
        let now = self.clock.now();
        let mut names = locked(&self.names);
        if let Some(name) = names.get_mut(&lease.name)
            && name.held_by(&lease, now).is_some()
        {
            name.held = None;
        }
        Ok(())
    }

    async fn holder(&self, name: &str) -> PortResult<Option<Box<str>>> {
        let now = self.clock.now();
        let mut names = locked(&self.names);
        let held = names.get_mut(name).and_then(|name| name.held(now));
        Ok(held.map(|held| held.holder.clone()))
    }
}
