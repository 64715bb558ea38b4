//! From the spool of a server to the stream that all servers share.
//!
//! ```text
//! poll the spool ─► decode ─► JSON, address cut ─► append to the stream ─► commit in the spool
//! ```
//! What the stream has acknowledged is removed from the spool, and nothing else is: while the stream is away, clicks wait
//! in the spool up to its bound. A crash between both steps sends some clicks again, under the same numbers, and the
//! stream's source leaves them out.

mod metrics;
mod state;

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{
    ClickSink, ClickSource, DeadLetters, ProducerId, SequencedRecord, StreamId, StreamRecord,
};
use curt_core::{Clock, PortResult, names};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use metrics::ForwardMetrics;
pub use state::ForwardState;

use crate::own_thread::run_on_own_thread;
use crate::record::{IpForm, RecordId, decode, encode_json};

/// Partitions of a spool are told apart by the last bits of a producer's number.
const PARTITION_BITS: u32 = 12;

#[derive(Clone, Copy, Debug)]
pub struct ForwardSettings {
    /// Records that are appended together.
    pub batch: usize,
    /// How long one poll waits for records.
    pub poll_wait: Duration,
    /// How long to let records gather after a poll that has returned all there are.
    pub poll_pause: Duration,
    /// How long to wait after a failure, at first; each further one in a row doubles it.
    pub retry: Duration,
    pub retry_max: Duration,
    /// How long clicks are still forwarded after the stop; the rest stays in the spool.
    pub drain_max: Duration,
    pub ip_form: IpForm,
}

impl Default for ForwardSettings {
    fn default() -> Self {
        Self {
            batch: 4_000,
            poll_wait: Duration::from_secs(1),
            poll_pause: Duration::from_millis(100),
            retry: Duration::from_millis(200),
            retry_max: Duration::from_secs(5),
            drain_max: Duration::from_secs(5),
            ip_form: IpForm::default(),
        }
    }
}

/// What the forwarder works with.
#[derive(Clone)]
pub struct ForwardPorts {
    /// The spool.
    pub source: Arc<dyn ClickSource>,
    /// The spool's: what it cannot read does not leave the server.
    pub dead_letters: Arc<dyn DeadLetters>,
    pub sink: Arc<dyn ClickSink>,
    pub clock: Arc<dyn Clock>,
}

pub struct Forwarder {
    ports: ForwardPorts,
    settings: ForwardSettings,
    metrics: ForwardMetrics,
    state: ForwardState,
}

impl Forwarder {
    #[must_use]
    pub fn new(
        ports: ForwardPorts,
        settings: ForwardSettings,
        metrics: ForwardMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            ports,
            settings,
            metrics,
            state: ForwardState::default(),
        })
    }

    /// Tells whether the stream takes clicks.
    #[must_use]
    pub fn state(&self) -> ForwardState {
        self.state.clone()
    }

    /// Forwards the clicks of every partition until `stop`, and then what is still in the spool, on a thread of lower
    /// priority than those that serve requests.
    pub async fn run_on_own_thread(self: Arc<Self>, stop: CancellationToken) {
        run_on_own_thread("curt-forward", move || self.run(stop)).await;
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) {
        // A spool knows its partitions at once.
        let Ok(partitions) = self.ports.source.assignment().await else {
            return;
        };
        let mut tasks = JoinSet::new();
        for partition in partitions {
            let (forwarder, stop) = (Arc::clone(&self), stop.clone());
            tasks.spawn(async move { forwarder.follow(partition, &stop).await });
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(event = names::event::TASK_FAILED, %error, "forwarder ended early");
            }
        }
    }

    async fn follow(&self, partition: u32, stop: &CancellationToken) {
        let mut next = 0;
        let mut failures = 0;
        let mut drain_until = None;
        loop {
            if stop.is_cancelled() {
                let until =
                    *drain_until.get_or_insert_with(|| Instant::now() + self.settings.drain_max);
                if Instant::now() >= until {
                    return;
                }
            }
            let wait = match stop.is_cancelled() {
                true => Duration::ZERO,
                false => self.settings.poll_wait,
            };
            let forwarded = tokio::select! {
                forwarded = self.forward(partition, &mut next, wait) => forwarded,
                // What is sent meanwhile is sent again: the next pass does not wait.
                () = stop.cancelled(), if !wait.is_zero() => continue,
            };
            let pause = match forwarded {
                Ok(count) => {
                    failures = 0;
                    self.state.note_success(partition);
                    match count {
                        0 if stop.is_cancelled() => return,
                        count if count < self.settings.batch => self.settings.poll_pause,
                        _ => Duration::ZERO,
                    }
                }
                Err(error) => {
                    self.state
                        .note_failure(partition, &error, self.ports.clock.now());
                    failures += 1;
                    let doubled = self.settings.retry.saturating_mul(1 << failures.min(10));
                    doubled.min(self.settings.retry_max)
                }
            };
            if !stop.is_cancelled() && !pause.is_zero() {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Forwards everything that is in the spool now, and says how many clicks. A failure ends it; calling again goes on.
    pub async fn drain(&self) -> PortResult<u64> {
        let mut total = 0;
        for partition in self.ports.source.assignment().await? {
            let mut next = 0;
            loop {
                let count = self.forward(partition, &mut next, Duration::ZERO).await?;
                if count == 0 {
                    break;
                }
                total += count as u64;
            }
        }
        Ok(total)
    }

    /// Forwards one batch, and says how many records it took from the spool.
    async fn forward(&self, partition: u32, next: &mut u64, wait: Duration) -> PortResult<usize> {
        let ports = &self.ports;
        let polled = ports
            .source
            .poll(partition, *next, self.settings.batch, wait)
            .await?;
        let Some(last) = polled.last() else {
            self.state.note_lag(partition, None);
            return Ok(0);
        };
        let producer = producer_id(ports.source.id(), partition);
        let records = self.encode(partition, producer, &polled);
        ports.sink.append(producer, &records).await?;
        self.metrics.forwarded.inc_by(records.len() as u64);
        *next = last.offset.saturating_add(1);
        ports.source.commit(partition, *next).await?;
        Ok(polled.len())
    }

    fn encode(
        &self,
        partition: u32,
        producer: ProducerId,
        polled: &[StreamRecord],
    ) -> Vec<SequencedRecord> {
        let mut records = Vec::with_capacity(polled.len());
        let mut oldest = None;
        for record in polled {
            let click = match decode(&record.bytes) {
                Ok(click) => click,
                Err(error) => {
                    let reason = error.reason();
                    self.ports
                        .dead_letters
                        .put(partition, record.offset, reason, &record.bytes);
                    continue;
                }
            };
            oldest = oldest.or(Some(click.at));
            let id = RecordId {
                producer: producer.0,
                sequence: record.offset,
            };
            let mut json = Vec::with_capacity(record.bytes.len() + 256);
            encode_json(&click, id, self.settings.ip_form, &mut json);
            records.push(SequencedRecord {
                sequence: record.offset,
                bytes: json.into(),
            });
        }
        self.state.note_lag(partition, oldest);
        records
    }
}

/// A spool's partition as a producer of the stream: the same over restarts, and on whatever machine it is drained.
fn producer_id(spool: StreamId, partition: u32) -> ProducerId {
    let number = u64::from(partition) & ((1 << PARTITION_BITS) - 1);
    ProducerId(spool.0 >> PARTITION_BITS << PARTITION_BITS | number)
}

#[cfg(test)]
mod tests;
