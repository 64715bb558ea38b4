//! The leases of this process, renewed in time. For efficiency only: see [`Leases`].

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{Lease, Leases};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::pace::report;

/// What a lease is for. Its text is the name that all processes use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeaseName {
    /// Minting into a ledger shard.
    Ledger(usize),
    /// Filling a pool shard.
    Pool(usize),
    /// Writing key files.
    KeyFiles,
    /// Seeding rows in the links database.
    Rows,
    /// Purging a links database.
    Purge(usize),
    /// Forgetting old requests with idempotency keys.
    Requests,
    /// Being alive, for the owner of open batches.
    BatchOwner(Box<str>),
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger(shard) => write!(f, "shard-locks/keys-db-{shard}"),
            Self::Pool(shard) => write!(f, "shard-locks/keys-pool-{shard}"),
            Self::KeyFiles => f.write_str("shard-locks/key-files"),
            Self::Rows => f.write_str("shard-locks/link-seeds"),
            Self::Purge(node) => write!(f, "shard-locks/links-purge-{node}"),
            Self::Requests => f.write_str("shard-locks/requests-purge"),
            Self::BatchOwner(owner) => write!(f, "key-owners/{owner}"),
        }
    }
}

/// The leases that this process holds or asks for.
pub struct HeldLeases {
    leases: Arc<dyn Leases>,
    ttl: Duration,
    held: Mutex<HashMap<LeaseName, HeldLease>>,
}

struct HeldLease {
    lease: Lease,
    renewed_at: Instant,
}

impl HeldLeases {
    #[must_use]
    pub fn new(leases: Arc<dyn Leases>, ttl: Duration) -> Self {
        Self {
            leases,
            ttl,
            held: Mutex::default(),
        }
    }

    /// Acquires or renews the lease and returns whether it is ours. Work that takes long asks before every step: a
    /// third of its time after the last renewal a lease is renewed, and when that is not confirmed for two thirds, the
    /// work stops, long before another process can have the lease. Both are told by the monotonic clock.
    pub async fn keep(&self, name: &LeaseName) -> bool {
        let mut leases = self.held.lock().await;
        // Before the call, because the engine may have granted it at any moment since.
        let asked_at = Instant::now();
        let is_fresh = |since: Instant| since.elapsed() < self.ttl * 2 / 3;
        if let Some(held) = leases.get_mut(name) {
            if held.renewed_at.elapsed() < self.ttl / 3 {
                return true;
            }
            match self.leases.renew(&held.lease, self.ttl).await {
                Ok(true) => {
                    held.renewed_at = asked_at;
                    return is_fresh(asked_at);
                }
                Ok(false) => {
                    leases.remove(name);
                }
                Err(error) => {
                    report(&error);
                    // Measured now, because the failure itself may have taken long.
                    return is_fresh(held.renewed_at);
                }
            }
        }
        match self.leases.acquire(&name.to_string(), self.ttl).await {
            Ok(Some(lease)) => {
                let renewed_at = asked_at;
                leases.insert(name.clone(), HeldLease { lease, renewed_at });
                is_fresh(asked_at)
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

    pub(crate) async fn holds(&self, name: &LeaseName) -> bool {
        self.held.lock().await.contains_key(name)
    }

    /// The fencing token of a lease that we hold. It grows with every new holder.
    pub(crate) async fn fencing_token(&self, name: &LeaseName) -> Option<u64> {
        let leases = self.held.lock().await;
        leases.get(name).map(|held| held.lease.fencing_token)
    }

    pub(crate) async fn release(&self, name: &LeaseName) {
        let held = self.held.lock().await.remove(name);
        if let Some(held) = held
            && let Err(error) = self.leases.release(held.lease).await
        {
            report(&error);
        }
    }

    /// Frees all, so that other processes go on at once.
    pub async fn release_all(&self) {
        for (_, held) in self.held.lock().await.drain() {
            if let Err(error) = self.leases.release(held.lease).await {
                report(&error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use curt_core::{ErrorKind, PortError, PortResult};

    use super::*;

    const TTL: Duration = Duration::from_secs(300);
    const A: LeaseName = LeaseName::Rows;

    /// A lease service whose renewals take as long and answer as told.
    struct Service {
        renewals: Mutex<Vec<Instant>>,
        answer: Mutex<(Duration, Option<bool>)>,
    }

    impl Service {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                renewals: Mutex::default(),
                answer: Mutex::new((Duration::ZERO, Some(true))),
            })
        }

        /// `None`: fails.
        fn answer_renewals(&self, after: Duration, answer: Option<bool>) {
            *self.answer.lock().unwrap() = (after, answer);
        }

        fn leases(self: &Arc<Self>) -> HeldLeases {
            HeldLeases::new(Arc::clone(self) as _, TTL)
        }
    }

    #[async_trait]
    impl Leases for Service {
        async fn acquire(&self, name: &str, _: Duration) -> PortResult<Option<Lease>> {
            // Ours at first; whoever lost it finds that somebody else has it.
            let free = self.renewals.lock().unwrap().is_empty();
            Ok(free.then(|| Lease {
                name: name.into(),
                token: "token".into(),
                fencing_token: 1,
            }))
        }

        async fn renew(&self, _: &Lease, ttl: Duration) -> PortResult<bool> {
            assert_eq!(ttl, TTL);
            self.renewals.lock().unwrap().push(Instant::now());
            let (after, answer) = *self.answer.lock().unwrap();
            tokio::time::sleep(after).await;
            answer.ok_or_else(|| PortError::new(ErrorKind::Timeout, "test", "renew", "silence"))
        }

        async fn release(&self, _: Lease) -> PortResult<()> {
            Ok(())
        }

        async fn holder(&self, _: &str) -> PortResult<Option<Box<str>>> {
            Ok(None)
        }
    }

    /// Asks every second for this many seconds, and returns how often the answer was yes.
    async fn hold_for(leases: &HeldLeases, seconds: u32) -> u32 {
        let mut held = 0;
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            held += u32::from(leases.keep(&A).await);
        }
        held
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_renewed_after_a_third_of_its_time() {
        let service = Service::new();
        let leases = service.leases();
        let begun = Instant::now();
        assert!(leases.keep(&A).await);
        assert_eq!(hold_for(&leases, 1_000).await, 1_000);
        let renewals = service.renewals.lock().unwrap();
        let thirds: Vec<u64> = renewals.iter().map(|at| (*at - begun).as_secs()).collect();
        assert_eq!(thirds, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_stops_before_an_unconfirmed_lease_can_have_run_out() {
        let service = Service::new();
        let leases = service.leases();
        assert!(leases.keep(&A).await);
        service.answer_renewals(Duration::ZERO, None);
        assert_eq!(hold_for(&leases, 600).await, 199);
        service.answer_renewals(Duration::ZERO, Some(true));
        assert!(leases.keep(&A).await, "confirmed again");
        service.answer_renewals(Duration::ZERO, Some(false));
        tokio::time::sleep(TTL / 3).await;
        assert!(!leases.keep(&A).await, "somebody else's");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_late_counts_from_the_question() {
        for answer in [None, Some(true)] {
            let service = Service::new();
            let leases = service.leases();
            assert!(leases.keep(&A).await);
            service.answer_renewals(TTL * 2 / 3, answer);
            tokio::time::sleep(TTL / 3).await;
            assert!(!leases.keep(&A).await, "{answer:?}");
        }
    }
}
