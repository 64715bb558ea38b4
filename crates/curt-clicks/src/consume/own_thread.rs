//! The consumers' thread. Counting can wait, redirects cannot: it has a lower priority and a bounded share of a core.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ClickCounters, ClickDamage, ClickStore, ClickWindow, CounterAddition, CounterWindow, Erasure,
    Salt, StreamPartition,
};
use curt_core::{Day, ErrorKind, LinkId, PortError, PortResult, UnixMillis};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Pipeline;
use crate::own_thread::run_on_own_thread;

impl Pipeline {
    /// Does what [`run`](Self::run) does on a thread of its own, with a lower priority than what serves requests and as much
    /// of a core as the settings allow.
    pub async fn run_on_own_thread(self: Arc<Self>, stop: CancellationToken) {
        let mut ports = self.ports.clone();
        if self.settings.has_remote_store {
            ports.store = Called::new(ports.store);
        }
        if let Some(counters) = ports.counters.take() {
            ports.counters = Some(Called::new(counters));
        }
        let pipeline = Arc::new(Self {
            ports,
            settings: self.settings,
            metrics: self.metrics.clone(),
            state: self.state.clone(),
            flush_requests: self.flush_requests.clone(),
            cpu_share: Some(CpuShare::new(self.settings.cpu_share)),
        });
        run_on_own_thread("curt-clicks", move || pipeline.run(stop)).await;
    }
}

/// How much of a core the thread may use.
#[derive(Debug)]
pub(super) struct CpuShare {
    share: f64,
    checked: Mutex<Checked>,
}

#[derive(Clone, Copy, Debug)]
struct Checked {
    at: Instant,
    /// What the thread had used until then.
    used: Duration,
}

impl CpuShare {
    fn new(share: f64) -> Self {
        Self {
            share,
            checked: Mutex::new(Checked {
                at: Instant::now(),
                used: Duration::ZERO,
            }),
        }
    }

    /// Rests for as long as it takes until no more than the share was used. For the thread that works, after each piece.
    pub(super) async fn rest(&self) {
        let rest = self.rest_due(Instant::now(), thread_time());
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
    }

    fn rest_due(&self, now: Instant, used: Duration) -> Duration {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = used.saturating_sub(checked.used);
        let rest = busy
            .div_f64(self.share)
            .saturating_sub(now.duration_since(checked.at));
        if rest.is_zero() {
            // What was not used is not saved up: a burst would be just what redirects notice.
            *checked = Checked { at: now, used };
        }
        rest
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A port that is called on another runtime: its connections serve others too, and must not depend on a thread that
/// rests.
struct Called<P: ?Sized> {
    port: Arc<P>,
    runtime: Handle,
}

impl<P: ?Sized> Called<P> {
    /// On the runtime of the caller.
    fn new(port: Arc<P>) -> Arc<Self> {
        Arc::new(Self {
            port,
            runtime: Handle::current(),
        })
    }

    async fn call<T, F>(&self, call: impl FnOnce(Arc<P>) -> F) -> PortResult<T>
    where
        T: Send + 'static,
        F: Future<Output = PortResult<T>> + Send + 'static,
    {
        let called = self.runtime.spawn(call(Arc::clone(&self.port)));
        called.await.unwrap_or_else(|error| {
            let detail = format!("a call ended early: {error}");
            Err(PortError::new(
                ErrorKind::Bug,
                "clicks",
                "call a port",
                detail,
            ))
        })
    }
}

macro_rules! called {
    (dyn $port:ident: $(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl $port for Called<dyn $port> {
            $(async fn $name(&self, $($argument: $type),*) -> PortResult<$answer> {
                self.call(|port| async move { port.$name($($argument),*).await }).await
            })*
        }
    };
}

called! {
    dyn ClickCounters:
    fn add(partition: StreamPartition, addition: CounterAddition) -> Option<u64>;
    fn window(partition: StreamPartition) -> Option<CounterWindow>;
    fn forget(partition: StreamPartition, from: u64) -> ();
}

called! {
    dyn ClickStore:
    fn offset(partition: StreamPartition) -> u64;
    fn apply(flush: ClickWindow) -> bool;
    fn salt(day: Day, fresh: Salt) -> Salt;
    fn forget_salts(before: Day) -> ();
    fn purge_clicks(before: UnixMillis, limit: usize) -> u64;
    fn trim_clicks(bytes_max: u64, limit: usize) -> u64;
    fn compact() -> ();
    fn free_bytes() -> Option<u64>;
    fn checkpoint() -> ();
    fn damage() -> Option<ClickDamage>;
    fn purge_rollups(before: Day, limit: usize) -> u64;
    fn erase_clicks(link: LinkId, generation: u32, pieces_max: usize) -> Erasure;
    fn erase_rollups(link: LinkId, generation: u32, pieces_max: usize) -> Erasure;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_beyond_the_share_is_rested_off_and_idle_time_is_not_saved_up() {
        const SECOND: Duration = Duration::from_secs(1);
        let share = CpuShare::new(0.25);
        let begin = Instant::now();
        let rest = |at: Duration, used: Duration| share.rest_due(begin + at, used);
        assert_eq!(rest(SECOND, SECOND), 3 * SECOND);
        assert_eq!(rest(2 * SECOND, SECOND), 2 * SECOND, "woken too early");
        assert_eq!(rest(4 * SECOND, SECOND), Duration::ZERO);
        assert_eq!(rest(100 * SECOND, SECOND), Duration::ZERO);
        assert_eq!(rest(101 * SECOND, 2 * SECOND), 3 * SECOND);
    }
}
