//! Tells other processes what this one has changed: the shared cache first, so that a process that drops its copy does not
//! find the old link there, and then the channel.
//!
//! The shared cache bounds the time of each call by itself, and every write calls it on its own: nothing waits behind a
//! channel that hangs. One task sends to the channel, so that the changes of requests that wait together go out together.
//! A request waits for its message a bounded time, and not at all while messages fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::PortError;
use curt_core::names::event;
use curt_core::ports::{Invalidations, LinkChange};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{InvalidationMetrics, WriteOutcome};
use crate::shared_cache::{Outdated, SharedCache};

/// Messages of requests that wait to be sent; those beyond are dropped and counted.
const WAITING_MAX: usize = 4_096;
/// Messages that go out together.
const TOGETHER_MAX: usize = 256;
/// Pauses before a message that failed is sent again. When the last one fails, copies end by their age.
const RETRY_AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

#[derive(Clone, Debug)]
pub struct PublisherSettings {
    /// How long a write waits at most until others have been told of it.
    pub wait_max: Duration,
}

impl Default for PublisherSettings {
    fn default() -> Self {
        Self {
            wait_max: Duration::from_millis(100),
        }
    }
}

pub struct Publisher {
    settings: PublisherSettings,
    channel: Option<Arc<dyn Invalidations>>,
    cache: Option<Arc<SharedCache>>,
    metrics: InvalidationMetrics,
    queue: mpsc::Sender<Message>,
    waiting: Mutex<Option<mpsc::Receiver<Message>>>,
    is_failing: AtomicBool,
}

struct Message {
    changes: Vec<LinkChange>,
    /// Dropped when it has been sent, or could not be.
    done: oneshot::Sender<()>,
}

impl Publisher {
    #[must_use]
    pub fn new(
        settings: PublisherSettings,
        channel: Option<Arc<dyn Invalidations>>,
        cache: Option<Arc<SharedCache>>,
        metrics: InvalidationMetrics,
    ) -> Arc<Self> {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        Arc::new(Self {
            settings,
            channel,
            cache,
            metrics,
            queue,
            waiting: Mutex::new(Some(waiting)),
            is_failing: AtomicBool::new(false),
        })
    }

    /// Has the changes sent, and waits for it where somebody could have a copy that is old now.
    pub(crate) async fn publish(&self, changes: Vec<LinkChange>, outcome: WriteOutcome) {
        if changes.is_empty() {
            return;
        }
        if let Some(cache) = &self.cache {
            cache.note_changes(&changes);
            cache.invalidate(&outdated(&changes, outcome)).await;
        }
        if self.channel.is_none() {
            return;
        }
        let count = changes.len() as u64;
        let (done, is_done) = oneshot::channel();
        if self.queue.try_send(Message { changes, done }).is_err() {
            self.metrics.dropped.inc_by(count);
            return;
        }
        if outcome != WriteOutcome::Created && !self.is_failing.load(Ordering::Relaxed) {
            // Late, or gone with the task: copies end by their age.
            timeout(self.settings.wait_max, is_done).await.ok();
        }
    }

    /// Sends until `stop`, and then what waits. The first caller does; others return at once.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let waiting = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut waiting) = waiting else {
            return;
        };
        let mut messages = Vec::with_capacity(TOGETHER_MAX);
        loop {
            tokio::select! {
                biased;
                taken = waiting.recv_many(&mut messages, TOGETHER_MAX) => {
                    if taken == 0 {
                        return;
                    }
                    self.send(std::mem::take(&mut messages)).await;
                }
                () = stop.cancelled() => return,
            }
        }
    }

    async fn send(&self, messages: Vec<Message>) {
        let Some(channel) = &self.channel else {
            return;
        };
        let (changes, done): (Vec<_>, Vec<_>) = messages
            .into_iter()
            .map(|message| (message.changes, message.done))
            .unzip();
        let changes = changes.concat();
        let mut waits = Some(done);
        let mut pauses = RETRY_AFTER.iter();
        loop {
            let Err(failure) = channel.publish(&changes).await else {
                return self.note_sent(changes.len());
            };
            // From here on nobody waits.
            waits.take();
            let is_failing = self.is_failing.load(Ordering::Relaxed);
            match pauses.next() {
                // While every message fails, one attempt each is enough.
                Some(pause) if !is_failing => tokio::time::sleep(*pause).await,
                _ => return self.note_failed(changes.len(), &failure),
            }
        }
    }

    fn note_failed(&self, count: usize, failure: &PortError) {
        self.metrics.failed.inc_by(count as u64);
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                event = event::INVALIDATIONS_FAILED,
                error = %failure,
                "changes not published"
            );
        }
    }

    fn note_sent(&self, count: usize) {
        self.metrics.sent.inc_by(count as u64);
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!(
                event = event::INVALIDATIONS_RECOVERED,
                "changes published again"
            );
        }
    }
}

/// What a write has left in the shared cache that may be old. New links were in none.
fn outdated(changes: &[LinkChange], outcome: WriteOutcome) -> Vec<Outdated> {
    let is_known = match outcome {
        WriteOutcome::Created => return Vec::new(),
        WriteOutcome::Changed => true,
        WriteOutcome::Unknown => false,
    };
    changes
        .iter()
        .map(|change| (change.id.clone(), is_known.then_some(change.revision)))
        .collect()
}
