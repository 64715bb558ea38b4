//! Background tasks: started by name, stopped in order, and named again when they do not stop.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::names::event;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

/// The phases of a shutdown, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    NotReady,
    DrainRequests,
    StopTasks,
    ReturnKeys,
    CloseStores,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::NotReady => "not_ready",
            Self::DrainRequests => "drain_requests",
            Self::StopTasks => "stop_tasks",
            Self::ReturnKeys => "return_keys",
            Self::CloseStores => "close_stores",
        }
    }
}

/// Announces a phase, runs it, and logs how long it took.
pub(crate) async fn phase<T>(phase: Phase, work: impl Future<Output = T>) -> T {
    let begun = tokio::time::Instant::now();
    let done = work.await;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    info!(
        event = event::SHUTDOWN_PHASE_REACHED,
        phase = phase.name(),
        took_ms,
        "shutdown phase done"
    );
    done
}

/// The tasks of one process.
#[derive(Clone, Default)]
pub(crate) struct Supervisor {
    stop: CancellationToken,
    tracker: TaskTracker,
    running: Arc<Mutex<Vec<&'static str>>>,
}

impl Supervisor {
    /// Starts a task that returns soon after its token is cancelled. A panic is logged and does not spread.
    pub(crate) fn start<F>(&self, name: &'static str, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        #[expect(clippy::disallowed_methods, reason = "this is the supervisor")]
        let work = tokio::spawn(task(self.stop.child_token()));
        self.names().push(name);
        let supervisor = self.clone();
        self.tracker.spawn(async move {
            if let Err(failure) = work.await {
                error!(event = event::TASK_FAILED, task = name, %failure, "a background task died");
            }
            supervisor.names().retain(|running| *running != name);
        });
    }

    /// Asks every task to stop and waits for them, at most for `grace`.
    pub(crate) async fn stop(&self, grace: Duration) {
        self.stop.cancel();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait())
            .await
            .is_err()
        {
            for task in self.names().iter() {
                warn!(
                    event = event::TASK_ABANDONED,
                    task, "a background task did not stop in time"
                );
            }
        }
    }

    fn names(&self) -> std::sync::MutexGuard<'_, Vec<&'static str>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicking_task_does_not_hold_up_the_shutdown() {
        let supervisor = Supervisor::default();
        supervisor.start("panics", |_| async { panic!("on purpose") });
        supervisor.start("waits", |stop| async move { stop.cancelled().await });
        supervisor.stop(Duration::from_secs(5)).await;
        assert!(supervisor.names().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_will_not_stop_is_left_behind_after_the_grace() {
        let supervisor = Supervisor::default();
        supervisor.start("stubborn", |_| std::future::pending());
        supervisor.stop(Duration::from_secs(5)).await;
        assert_eq!(*supervisor.names(), ["stubborn"]);
    }
}
