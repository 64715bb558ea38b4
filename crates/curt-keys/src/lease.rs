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

    /// Takes or keeps the lock `name` and says whether it is ours. Work that takes long asks before every step: a third
    /// of the lease's time after the last renewal it is renewed, and when nobody confirms that for two thirds, the work
    /// stops, long before somebody else can have the lock. Both are told by a clock that nobody sets.
    pub(crate) async fn hold(&mut self, name: &str) -> bool {
        let asked_at = Instant::now();
        if let Some(held) = self.held.get_mut(name) {
            if held.renewed_at.elapsed() < self.ttl / 3 {
                return true;
            }
            match self.locks.renew(&held.lease, self.ttl).await {
                Ok(true) => {
                    held.renewed_at = asked_at;
                    return asked_at.elapsed() < self.ttl * 2 / 3;
                }
                Ok(false) => {
                    self.held.remove(name);
                }
                Err(error) => {
                    report(&error);
                    // The failure itself may have taken long.
                    return held.renewed_at.elapsed() < self.ttl * 2 / 3;
                }
            }
        }
        match self.locks.acquire(name, self.ttl).await {
            Ok(Some(lease)) => {
                let renewed_at = asked_at;
                self.held.insert(name.into(), Held { lease, renewed_at });
                asked_at.elapsed() < self.ttl * 2 / 3
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

    /// Tells one holding of the lock from the next.
    pub(crate) fn fence(&self, name: &str) -> Option<u64> {
        self.held.get(name).map(|held| held.lease.fence)
    }

    pub(crate) async fn release(&mut self, name: &str) {
        if let Some(held) = self.held.remove(name)
            && let Err(error) = self.locks.release(held.lease).await
        {
            report(&error);
        }
    }

    pub(crate) async fn release_all(&mut self) {
        for (_, held) in self.held.drain() {
            if let Err(error) = self.locks.release(held.lease).await {
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

    /// A lock service whose renewals take as long and answer as told.
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

        fn leases(self: &Arc<Self>) -> Leases {
            Leases::new(Arc::clone(self) as _, TTL)
        }
    }

    #[async_trait]
    impl Locks for Service {
        async fn acquire(&self, name: &str, _: Duration) -> PortResult<Option<Lease>> {
            // Ours at first; whoever lost it finds that somebody else has it.
            let free = self.renewals.lock().unwrap().is_empty();
            Ok(free.then(|| Lease {
                name: name.into(),
                token: "token".into(),
                fence: 1,
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
    async fn hold_for(leases: &mut Leases, seconds: u32) -> u32 {
        let mut held = 0;
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            held += u32::from(leases.hold("a").await);
        }
        held
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_renewed_after_a_third_of_its_time() {
        let service = Service::new();
        let mut leases = service.leases();
        let begun = Instant::now();
        assert!(leases.hold("a").await);
        assert_eq!(hold_for(&mut leases, 1_000).await, 1_000);
        let renewals = service.renewals.lock().unwrap();
        let thirds: Vec<u64> = renewals.iter().map(|at| (*at - begun).as_secs()).collect();
        assert_eq!(thirds, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_stops_before_an_unconfirmed_lease_can_have_run_out() {
        let service = Service::new();
        let mut leases = service.leases();
        assert!(leases.hold("a").await);
        service.answer_renewals(Duration::ZERO, None);
        assert_eq!(hold_for(&mut leases, 600).await, 199);
        service.answer_renewals(Duration::ZERO, Some(true));
        assert!(leases.hold("a").await, "confirmed again");
        service.answer_renewals(Duration::ZERO, Some(false));
        tokio::time::sleep(TTL / 3).await;
        assert!(!leases.hold("a").await, "somebody else's");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_late_counts_from_the_question() {
        for answer in [None, Some(true)] {
            let service = Service::new();
            let mut leases = service.leases();
            assert!(leases.hold("a").await);
            service.answer_renewals(TTL * 2 / 3, answer);
            tokio::time::sleep(TTL / 3).await;
            assert!(!leases.hold("a").await, "{answer:?}");
        }
    }
}
