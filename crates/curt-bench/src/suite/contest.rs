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

/// One contender's figures, one per turn.
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
    /// By which runs are compared that lie close together.
    pub(super) turn: u32,
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
    /// Share of the clicks that were counted when the last was answered; 0 where none are counted.
    pub(super) counted_share: f64,
}

impl Series {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, turn: u32, report: &LoadReport) {
        self.add_with(turn, report, 0);
    }

    /// Adds a run after which the server spent `later_nanos` on what the run had left to be done.
    pub(super) fn add_with(&mut self, turn: u32, report: &LoadReport, later_nanos: u64) {
        self.failed += report.failed();
        let cpu_nanos = (report.server_cpu_nanos.unwrap_or_default() + later_nanos) as f64;
        let per_cpu_nano = report.requests as f64 / cpu_nanos.max(1.0);
        let workers = report.worker_cpu_nanos.filter(|nanos| *nanos > 0);
        let per_worker_nano = workers.map(|nanos| report.requests as f64 / nanos as f64);
        self.values.push(Figures {
            turn,
            rate: report.items_rate(),
            per_cpu_second: per_cpu_nano * 1e9,
            per_worker_second: per_worker_nano.unwrap_or_default() * 1e9,
            cpu_us: cpu_nanos / 1e3 / (report.items as f64).max(1.0),
            busy: report.server_busy().unwrap_or_default(),
            p50_us: report.latency.p50_us,
            p99_us: report.latency.p99_us,
            counted_share: 0.0,
        });
    }

    pub(super) fn add_rate(&mut self, turn: u32, rate: f64) {
        self.values.push(Figures {
            turn,
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

    /// This series as a multiple of `base`, turn by turn: the machine drifts between them.
    pub(super) fn ratio(&self, base: &Self, figure: fn(&Figures) -> f64) -> Option<Spread> {
        let pairs = self.values.iter().filter_map(|ours| {
            let theirs = base.values.iter().find(|theirs| theirs.turn == ours.turn)?;
            Some((figure(ours), figure(theirs)))
        });
        let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.unzip();
        Spread::of_ratios(&ours, &theirs)
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
    fn ratios_pair_the_turns() {
        let (mut ours, mut theirs) = (Series::new("ours"), Series::new("theirs"));
        for (turn, our, their) in [(0, 30.0, 10.0), (1, 8.0, 4.0), (3, 50.0, 10.0)] {
            ours.add_rate(turn, our);
            theirs.add_rate(turn, their);
        }
        // Turns that only one of them had.
        ours.add_rate(4, 1.0);
        theirs.add_rate(2, 1.0);
        let ratio = ours.ratio(&theirs, |figures| figures.rate).unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 3.0, 5.0));
    }
}
