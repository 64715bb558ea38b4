//! From the stream to the store: clicks are polled, aggregated and written, each of them once.
//!
//! ```text
//! poll ─► decode ─► aggregate ─┬─ window over, budget used up, a report, the end ─► apply ─► commit
//!   ▲                          │
//!   └──────────────────────────┘
//! ```
//! The store moves its offset in the same transaction as the counts (C-1), and the stream is told only afterwards. So
//! there is no step after which a crash would lose a click or count one twice: whoever comes next asks the store for
//! the offset and polls from there. Two consumers of one partition are caught by the store, which refuses the second.
//!
//! Where there are [`ClickCounters`], the window is in them, with the offset that it goes up to, and the aggregate has what
//! was read since the last addition. The store's offset decides about it: a window that does not begin there is dropped.
//!
//! One task per partition, all of them on one thread beside those that serve requests; a failure of a port is waited
//! out, and nothing is dropped meanwhile.

mod consumer;
mod disk_space;
mod flush_requests;
mod metrics;
mod own_thread;
mod remote_flush;
mod retention;
mod state;
mod window_budget;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{ClickCounters, ClickSource, ClickStore, DeadLetters};
use curt_core::{Clock, PortError, names};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use flush_requests::FlushRequests;
pub use metrics::ConsumerMetrics;
pub use remote_flush::{RemoteFreshness, answer_others, ask_others};
pub use retention::{Retention, RetentionSettings};
pub use state::{CountingProblem, CountingState};

use crate::aggregate::AggregateSettings;
use crate::classify::CurrentReference;
use consumer::Consumer;
use own_thread::CpuShare;
use window_budget::WindowBudget;

#[derive(Clone, Copy, Debug)]
pub struct ConsumerSettings {
    /// How long clicks are aggregated before they are written, unless a report asks for them: what other processes see
    /// may be that old.
    pub window: Duration,
    /// Memory that all windows together may take before the large ones are written, in bytes.
    pub window_bytes_max: u64,
    /// The same for records that were read and not written: the stream keeps them until then.
    pub read_bytes_max: u64,
    /// How often what was read is added to the counters, where there are any: a process that dies has so much read again.
    pub counters_every: Duration,
    /// Records of one poll.
    pub poll_max: usize,
    /// Of how much of a core the thread of the consumers makes use, from above 0 to 1.
    pub cpu_share: f64,
    /// Whether the store is an engine that runs elsewhere, over connections.
    pub has_remote_store: bool,
    /// How long one poll waits for records.
    pub poll_wait: Duration,
    /// How long to let records gather after a poll that has returned all there are.
    pub poll_pause: Duration,
    /// How long to wait after a failure of a port.
    pub retry: Duration,
    /// How long clicks are still counted after the stop; the rest stays in the stream.
    pub drain_max: Duration,
    /// Room on the store's disk that clicks leave to links, in bytes.
    pub disk_reserve: u64,
    /// What single clicks may take together, in bytes; `None`: as much as there is room for.
    pub clicks_bytes_max: Option<u64>,
    pub aggregate: AggregateSettings,
}

impl Default for ConsumerSettings {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(120),
            window_bytes_max: 16 << 20,
            read_bytes_max: 32 << 20,
            counters_every: Duration::from_secs(1),
            poll_max: 4_000,
            cpu_share: 1.0,
            has_remote_store: false,
            poll_wait: Duration::from_secs(1),
            poll_pause: Duration::from_millis(100),
            retry: Duration::from_secs(1),
            drain_max: Duration::from_secs(5),
            disk_reserve: 0,
            clicks_bytes_max: None,
            aggregate: AggregateSettings::default(),
        }
    }
}

/// What the pipeline works with.
#[derive(Clone)]
pub struct ConsumerPorts {
    pub source: Arc<dyn ClickSource>,
    pub dead_letters: Arc<dyn DeadLetters>,
    pub store: Arc<dyn ClickStore>,
    /// Where windows are kept until they are written; `None`: in the memory of the consumers.
    pub counters: Option<Arc<dyn ClickCounters>>,
    pub clock: Arc<dyn Clock>,
    pub reference: CurrentReference,
}

pub struct Pipeline {
    ports: ConsumerPorts,
    settings: ConsumerSettings,
    metrics: ConsumerMetrics,
    state: CountingState,
    flush_requests: FlushRequests,
    /// Where the consumers have a thread of their own.
    cpu_share: Option<CpuShare>,
}

/// The consumers of the partitions that are assigned, and of those that were.
struct Consumers {
    tasks: JoinSet<()>,
    /// By partition, what ends it when the partition is no longer this process's.
    running: HashMap<u32, CancellationToken>,
}

impl Pipeline {
    #[must_use]
    pub fn new(
        ports: ConsumerPorts,
        settings: ConsumerSettings,
        metrics: ConsumerMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            ports,
            settings,
            metrics,
            state: CountingState::default(),
            flush_requests: FlushRequests::default(),
            cpu_share: None,
        })
    }

    /// Tells whether clicks are counted.
    #[must_use]
    pub fn state(&self) -> CountingState {
        self.state.clone()
    }

    /// Has the clicks written that were aggregated so far.
    #[must_use]
    pub fn flush_requests(&self) -> FlushRequests {
        self.flush_requests.clone()
    }

    /// Counts the clicks of every partition until `stop`, and then what is still in the stream.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let Some(assigned) = self.assignment(&stop).await else {
            return;
        };
        let ConsumerSettings {
            window_bytes_max,
            read_bytes_max,
            ..
        } = self.settings;
        let budget = WindowBudget::new(window_bytes_max, read_bytes_max, assigned.len());
        let mut consumers = Consumers {
            tasks: JoinSet::new(),
            running: HashMap::new(),
        };
        self.follow(&mut consumers, &assigned, &budget, &stop);
        loop {
            tokio::select! {
                () = self.ports.source.assignment_changed(), if !stop.is_cancelled() => {
                    let Some(assigned) = self.assignment(&stop).await else { continue };
                    self.follow(&mut consumers, &assigned, &budget, &stop);
                }
                ended = consumers.tasks.join_next(), if !consumers.tasks.is_empty() => {
                    if let Some(Err(error)) = ended {
                        tracing::error!(event = names::event::TASK_FAILED, %error, "click consumer ended early");
                    }
                }
                () = stop.cancelled(), if consumers.tasks.is_empty() => return,
            }
        }
    }

    /// Starts a consumer for each partition that is new, and has those end whose partitions are gone.
    fn follow(
        self: &Arc<Self>,
        consumers: &mut Consumers,
        assigned: &[u32],
        budget: &Arc<WindowBudget>,
        stop: &CancellationToken,
    ) {
        consumers.running.retain(|partition, revoked| {
            let stays = assigned.contains(partition);
            if !stays {
                revoked.cancel();
            }
            stays
        });
        budget.share_among(assigned.len());
        for partition in assigned {
            if consumers.running.contains_key(partition) {
                continue;
            }
            let (partition, revoked) = (*partition, CancellationToken::new());
            consumers.running.insert(partition, revoked.clone());
            let (pipeline, stop, share) = (Arc::clone(self), stop.clone(), budget.share());
            consumers.tasks.spawn(async move {
                let consumer = Consumer::new(&pipeline, partition, share);
                consumer.run(&stop, &revoked).await;
            });
        }
    }

    /// `None` when the end came first.
    async fn assignment(&self, stop: &CancellationToken) -> Option<Vec<u32>> {
        loop {
            match self.ports.source.assignment().await {
                Ok(assigned) => return Some(assigned),
                Err(error) => report(&error),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(self.settings.retry) => {}
            }
        }
    }
}

/// Background work swallows a failure after this line: the next pass tries again.
fn report(error: &PortError) {
    tracing::warn!(
        event = names::event::STORE_FAILED,
        backend = error.backend,
        kind = error.kind.as_str(),
        "{error}"
    );
}

#[cfg(test)]
mod tests;
