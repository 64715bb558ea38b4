//! The locks that this process holds, renewed in time. For efficiency only: see [`Locks`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{Lease, Locks};
use tokio::time::Instant;

use crate::pace::report;

pub(crate) struct Leases {
    locks: Arc<dyn Locks>,
    ttl: Duration,
    held: HashMap<Box<str>, Held>,
}

struct Held {
    lease: Lease,
    renewed_at: Instant,
}

impl Leases {
    pub(crate) fn new(locks: Arc<dyn Locks>, ttl: Duration) -> Self {
        Self {
            locks,
            ttl,
            held: HashMap::new(),
        }
    }

    /// Takes or keeps the lock `name` and says whether it is ours. While the lock service is away, a lease counts as
    /// ours until two thirds of its time are over.
    pub(crate) async fn hold(&mut self, name: &str) -> bool {
        let asked_at = Instant::now();
        if let Some(held) = self.held.get_mut(name) {
            let age = held.renewed_at.elapsed();
            if age < self.ttl / 3 {
                return true;
            }
            match self.locks.renew(&held.lease, self.ttl).await {
                Ok(true) => {
                    held.renewed_at = asked_at;
                    return true;
                }
                Ok(false) => {
                    self.held.remove(name);
                }
                Err(error) => {
                    report(&error);
                    return age < self.ttl * 2 / 3;
                }
            }
        }
        match self.locks.acquire(name, self.ttl).await {
            Ok(Some(lease)) => {
                let renewed_at = asked_at;
                self.held.insert(name.into(), Held { lease, renewed_at });
                true
            }
            Ok(None) => false,
            Err(error) => {
                report(&error);
                false
            }
        }
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        self.held.contains_key(name)
    }

    pub(crate) async fn release_all(&mut self) {
        for (_, held) in self.held.drain() {
            if let Err(error) = self.locks.release(held.lease).await {
                report(&error);
            }
        }
    }
}
