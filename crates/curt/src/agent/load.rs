//! How much of the usual load this process should get.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use curt_http::HttpMetrics;
use curt_http::server::LoopLag;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// What the newest sample counts: after half a second three quarters of a change are seen.
const NEWEST_PART: f64 = 0.25;
/// Steps of the weight, so that a balancer is not told of every tremor.
const STEP: f64 = 5.0;
/// From this part of the processors' time, and of the connections, on the weight falls.
const CPU_FREE_UNTIL: f64 = 0.8;
const CONNECTIONS_FREE_UNTIL: f64 = 0.5;

/// What was measured in one stretch of time, each as a part of what there is.
#[derive(Clone, Copy, Debug)]
struct LoadSample {
    /// Time in which event loops stood still.
    lag: f64,
    /// Processors' time that this process used.
    cpu: f64,
    /// Connections that are open.
    connections: f64,
}

impl LoadSample {
    /// The part of the usual load that the process can carry: what the scarcest of the three allows.
    fn capacity(self) -> f64 {
        let running = 1.0 - self.lag;
        // Half at worst: a process that is busy and in time is no slow one.
        let cpu = 1.0 - 0.5 * above(self.cpu, CPU_FREE_UNTIL);
        let connections = 1.0 - 0.9 * above(self.connections, CONNECTIONS_FREE_UNTIL);
        running.min(cpu).min(connections).clamp(0.0, 1.0)
    }
}

/// How far `part` is on the way from `free` to 1.
fn above(part: f64, free: f64) -> f64 {
    ((part - free) / (1.0 - free)).clamp(0.0, 1.0)
}

/// Measures load and keeps the weight that follows from it.
pub(super) struct LoadMeter {
    lag: Arc<LoopLag>,
    metrics: HttpMetrics,
    connections_max: usize,
    cores: usize,
    /// In percent.
    weight: AtomicU32,
}

impl LoadMeter {
    pub(super) fn new(lag: Arc<LoopLag>, metrics: HttpMetrics, connections_max: usize) -> Self {
        Self {
            lag,
            metrics,
            connections_max,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            weight: AtomicU32::new(100),
        }
    }

    /// The part of its usual load that this process should get now, in percent: 1 to 100.
    pub(super) fn weight(&self) -> u32 {
        self.weight.load(Ordering::Relaxed)
    }

    pub(super) async fn measure(&self, stop: CancellationToken) {
        let mut capacity = 1.0;
        let (mut since, mut cpu) = (Instant::now(), cpu_time());
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(SAMPLE_EVERY) => {}
            }
            let elapsed = since.elapsed();
            let used = cpu_time().saturating_sub(cpu);
            (since, cpu) = (Instant::now(), cpu + used);
            let sample = self.sample(elapsed, used);
            // A stretch counts by its length: a process that was stopped takes one sample afterwards, of all that time.
            let stretches = elapsed.as_secs_f64() / SAMPLE_EVERY.as_secs_f64();
            let kept = (1.0 - NEWEST_PART).powf(stretches);
            capacity = capacity * kept + sample.capacity() * (1.0 - kept);
            let weight = as_percent(capacity);
            self.weight.store(weight, Ordering::Relaxed);
            self.metrics.load_weight.set(weight.into());
        }
    }

    fn sample(&self, elapsed: Duration, used: Duration) -> LoadSample {
        let open = self.metrics.connections.get();
        LoadSample {
            lag: self.lag.take_share(elapsed),
            cpu: used.as_secs_f64() / (elapsed.as_secs_f64() * as_float(self.cores)),
            connections: as_float(usize::try_from(open).unwrap_or(0))
                / as_float(self.connections_max),
        }
    }
}

/// Never 0: a server that gets nothing could not show that it is well again.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and 100"
)]
fn as_percent(capacity: f64) -> u32 {
    let stepped = (capacity * 100.0 / STEP).round() * STEP;
    stepped.clamp(1.0, 100.0) as u32
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn as_float(count: usize) -> f64 {
    count as f64
}

/// Time that all threads of this process have run.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(lag: f64, cpu: f64, connections: f64) -> u32 {
        let sample = LoadSample {
            lag,
            cpu,
            connections,
        };
        as_percent(sample.capacity())
    }

    #[test]
    fn the_scarcest_of_time_processors_and_connections_sets_the_weight() {
        for (load, expected) in [
            ((0.0, 0.0, 0.0), 100),
            ((0.0, 0.8, 0.5), 100),
            ((0.25, 0.3, 0.1), 75),
            ((0.75, 0.9, 0.6), 25),
            ((1.0, 0.0, 0.0), 1),
            ((0.0, 1.0, 0.0), 50),
            ((0.0, 2.0, 0.0), 50),
            ((0.0, 0.0, 1.0), 10),
            ((0.02, 0.0, 0.0), 100),
        ] {
            let (lag, cpu, connections) = load;
            assert_eq!(weight(lag, cpu, connections), expected, "{load:?}");
        }
    }
}
