//! What a load found.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

use crate::cpu::CpuSpent;
use crate::median::grouped;

/// Why a request did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The connection could not be opened again.
    Connect,
    /// The connection broke before the answer was whole.
    Lost,
    /// No answer in time.
    Timeout,
    /// Another status than the one expected.
    Status(u16),
    /// A redirect without a `Location`.
    NoLocation,
    /// A redirect to another place than the key's.
    WrongLocation,
    /// Not an answer that can be read.
    Malformed,
    /// The server answered that it did not do what was asked.
    Refused,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Lost => f.write_str("connection lost"),
            Self::Timeout => f.write_str("timeout"),
            Self::Status(code) => write!(f, "status {code}"),
            Self::NoLocation => f.write_str("no location"),
            Self::WrongLocation => f.write_str("wrong location"),
            Self::Malformed => f.write_str("malformed"),
            Self::Refused => f.write_str("refused"),
        }
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Counts while the load runs.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) completed: u64,
    pub(super) items: u64,
    pub(super) failures: BTreeMap<Failure, u64>,
    pub(super) latency: Histogram<u64>,
    pub(super) elapsed: Duration,
    pub(super) reconnects: u64,
    pub(super) unsent: u64,
}

/// One nanosecond to one minute with three digits: 200 KiB, so that it stays in the processor's cache.
pub(super) fn new_histogram() -> Histogram<u64> {
    #[expect(
        clippy::expect_used,
        reason = "the bounds are constants that the library accepts"
    )]
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("valid histogram bounds")
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub mean_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            mean_us: histogram.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: histogram.max() as f64 / 1e3,
        }
    }
}

/// The result of one load.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// Requests that were answered as expected.
    pub requests: u64,
    /// What they did in all: redirects, or links created.
    pub items: u64,
    /// Requests that were not, by reason.
    pub failures: BTreeMap<Failure, u64>,
    /// Requests of an open loop that fell due but found no free connection before the end.
    pub unsent: u64,
    /// Connections opened anew during the run.
    pub reconnects: u64,
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub elapsed: Duration,
    pub latency: Latency,
    /// Processor time of the server, in nanoseconds, where its process was given.
    pub server_cpu_nanos: Option<u64>,
    /// The part of it that the redirect workers spent.
    pub worker_cpu_nanos: Option<u64>,
}

fn as_seconds<S: Serializer>(elapsed: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(elapsed.as_secs_f64())
}

impl LoadReport {
    pub(super) fn new(tally: Tally, spent: Option<CpuSpent>) -> Self {
        Self {
            requests: tally.completed,
            items: tally.items,
            failures: tally.failures,
            unsent: tally.unsent,
            reconnects: tally.reconnects,
            elapsed: tally.elapsed,
            latency: Latency::of(&tally.latency),
            server_cpu_nanos: spent.map(|spent| spent.all),
            worker_cpu_nanos: spent.map(|spent| spent.workers),
        }
    }

    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Requests per second of wall time.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Items per second of wall time.
    #[must_use]
    pub fn items_rate(&self) -> f64 {
        self.items as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Microseconds of the server's processor time per answered request.
    #[must_use]
    pub fn server_cpu_us(&self) -> Option<f64> {
        let nanos = self.server_cpu_nanos? as f64;
        (self.requests > 0).then(|| nanos / 1e3 / self.requests as f64)
    }

    /// Requests per second of the server's processor time: the figure to compare servers by.
    #[must_use]
    pub fn requests_per_cpu_second(&self) -> Option<f64> {
        self.server_cpu_us().map(|micros| 1e6 / micros)
    }

    /// How many cores the server kept busy.
    #[must_use]
    pub fn server_busy(&self) -> Option<f64> {
        Some(self.server_cpu_nanos? as f64 / 1e9 / self.elapsed.as_secs_f64().max(1e-9))
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latency = &self.latency;
        writeln!(
            f,
            "requests   {} in {:.2} s = {}/s",
            grouped(self.requests as f64),
            self.elapsed.as_secs_f64(),
            grouped(self.rate())
        )?;
        if self.items != self.requests {
            let (items, rate) = (grouped(self.items as f64), grouped(self.items_rate()));
            writeln!(f, "links      {items} = {rate}/s")?;
        }
        writeln!(
            f,
            "latency    p50 {} · p90 {} · p99 {} · p99.9 {} · max {}",
            Micros(latency.p50_us),
            Micros(latency.p90_us),
            Micros(latency.p99_us),
            Micros(latency.p999_us),
            Micros(latency.max_us)
        )?;
        if let (Some(micros), Some(busy)) = (self.server_cpu_us(), self.server_busy()) {
            writeln!(
                f,
                "server     {micros:.2} µs of processor time per request, {busy:.2} cores busy"
            )?;
        }
        if self.unsent > 0 {
            let unsent = grouped(self.unsent as f64);
            writeln!(
                f,
                "unsent     {unsent}: the server did not keep up with the rate"
            )?;
        }
        for (failure, count) in &self.failures {
            writeln!(f, "failed     {} × {failure}", grouped(*count as f64))?;
        }
        Ok(())
    }
}

/// Microseconds in the unit that reads best.
pub(crate) struct Micros(pub(crate) f64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            micros if micros < 1_000.0 => write!(f, "{micros:.0} µs"),
            micros if micros < 1_000_000.0 => write!(f, "{:.2} ms", micros / 1e3),
            micros => write!(f, "{:.2} s", micros / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> LoadReport {
        let mut latency = new_histogram();
        for micros in 1..=100_u64 {
            latency.record(micros * 1_000).unwrap();
        }
        let tally = Tally {
            completed: 100,
            items: 100,
            failures: BTreeMap::from([(Failure::Status(503), 2), (Failure::Lost, 1)]),
            latency,
            elapsed: Duration::from_millis(500),
            reconnects: 0,
            unsent: 0,
        };
        let spent = CpuSpent {
            all: 600_000,
            workers: 400_000,
        };
        LoadReport::new(tally, Some(spent))
    }

    #[test]
    fn figures_follow_from_the_counts() {
        let report = report();
        assert_eq!(report.failed(), 3);
        assert!((report.rate() - 200.0).abs() < 1e-6);
        assert!((report.server_cpu_us().unwrap() - 6.0).abs() < 1e-6);
        assert!((report.requests_per_cpu_second().unwrap() - 166_666.7).abs() < 0.1);
        assert!((report.server_busy().unwrap() - 0.0012).abs() < 1e-9);
        assert!((report.latency.p99_us - 99.0).abs() < 0.2);
    }

    #[test]
    fn the_text_names_what_matters() {
        let text = report().to_string();
        for part in [
            "100 in 0.50 s = 200/s",
            "p50 50 µs",
            "6.00 µs of processor time",
            "2 × status 503",
            "1 × connection lost",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(!text.contains("links "), "{text}");
    }

    #[test]
    fn the_json_has_plain_numbers_and_named_failures() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["requests"], 100);
        assert_eq!(json["failures"]["status 503"], 2);
        assert_eq!(json["seconds"], 0.5);
    }
}
