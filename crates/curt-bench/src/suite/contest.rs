//! Taking turns.

use crate::load::LoadReport;
use crate::median::Spread;

/// In which order contenders run in a round: as listed, and backwards in every other round, so that none always
/// follows the same neighbour.
pub(super) fn turns(round: u32, contenders: usize) -> Vec<usize> {
    let forward = 0..contenders;
    if round.is_multiple_of(2) {
        forward.collect()
    } else {
        forward.rev().collect()
    }
}

/// One contender's figures, one per round and in the order of the rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<Figures>,
    /// Requests that failed in any round.
    pub(super) failed: u64,
}

/// What one run gave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Requests, rows or links per second of wall time.
    pub(super) rate: f64,
    /// Requests per second of the server's processor time, with what it spent on them afterwards.
    pub(super) per_cpu_second: f64,
    /// Requests per second of its redirect workers' processor time; 0 where none are known.
    pub(super) per_worker_second: f64,
    /// Microseconds of the server's processor time per request or link.
    pub(super) cpu_us: f64,
    /// Cores that the server kept busy.
    pub(super) busy: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

impl Series {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, report: &LoadReport) {
        self.add_with(report, 0);
    }

    /// Adds a run after which the server spent `later_nanos` on what the run had left to be done.
    pub(super) fn add_with(&mut self, report: &LoadReport, later_nanos: u64) {
        self.failed += report.failed();
        let cpu_nanos = (report.server_cpu_nanos.unwrap_or_default() + later_nanos) as f64;
        let per_cpu_nano = report.requests as f64 / cpu_nanos.max(1.0);
        let workers = report.worker_cpu_nanos.filter(|nanos| *nanos > 0);
        let per_worker_nano = workers.map(|nanos| report.requests as f64 / nanos as f64);
        self.values.push(Figures {
            rate: report.items_rate(),
            per_cpu_second: per_cpu_nano * 1e9,
            per_worker_second: per_worker_nano.unwrap_or_default() * 1e9,
            cpu_us: cpu_nanos / 1e3 / (report.items as f64).max(1.0),
            busy: report.server_busy().unwrap_or_default(),
            p50_us: report.latency.p50_us,
            p99_us: report.latency.p99_us,
        });
    }

    pub(super) fn add_rate(&mut self, rate: f64) {
        self.values.push(Figures {
            rate,
            ..Figures::default()
        });
    }

    pub(super) fn each(&self, figure: fn(&Figures) -> f64) -> Vec<f64> {
        self.values.iter().map(figure).collect()
    }

    pub(super) fn spread(&self, figure: fn(&Figures) -> f64) -> Option<Spread> {
        Spread::of(&self.each(figure))
    }

    /// This series as a multiple of `base`, round by round.
    pub(super) fn ratio(&self, base: &Self, figure: fn(&Figures) -> f64) -> Option<Spread> {
        Spread::of_ratios(&self.each(figure), &base.each(figure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_round_runs_backwards() {
        assert_eq!(turns(0, 3), [0, 1, 2]);
        assert_eq!(turns(1, 3), [2, 1, 0]);
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let (mut ours, mut theirs) = (Series::new("ours"), Series::new("theirs"));
        for (our, their) in [(30.0, 10.0), (8.0, 4.0), (50.0, 10.0)] {
            ours.add_rate(our);
            theirs.add_rate(their);
        }
        let ratio = ours.ratio(&theirs, |figures| figures.rate).unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 3.0, 5.0));
    }
}
