//! Everything that one run found, as a page.

use std::time::Duration;

use jiff::Timestamp;

use super::SuiteOptions;
use super::counting::CountingResults;
use super::creates::CreateResults;
use super::footprint::{DiskResults, StartResults};
use super::kept::KeptResults;
use super::page::Page;
use super::redirects::RedirectResults;
use super::verdict::{Skip, Verdict};
use super::yardstick::Yardstick;
use super::{click_tables, promises, tables};
use crate::machine::Machine;
use crate::median::grouped;

/// Everything that one run found.
#[derive(Clone, Debug)]
pub struct Results {
    when: Timestamp,
    command: String,
    versions: Vec<String>,
    machine: Machine,
    pub(super) links: u32,
    rounds: u32,
    seconds: f64,
    pub(super) notes: Vec<String>,
    pub(super) elapsed: Duration,
    /// Whether every server sent by an io_uring, where one was asked.
    pub(super) io_uring: Option<bool>,
    pub(super) redirect: Option<RedirectResults>,
    pub(super) counting: Option<CountingResults>,
    pub(super) kept: Option<KeptResults>,
    pub(super) yardsticks: Vec<Yardstick>,
    pub(super) create: Option<CreateResults>,
    pub(super) disk: Option<DiskResults>,
    pub(super) start: Option<StartResults>,
}

impl Results {
    pub(super) fn new(options: &SuiteOptions, machine: Machine, versions: Vec<String>) -> Self {
        Self {
            when: Timestamp::now(),
            command: options.command.clone(),
            versions,
            machine,
            links: options.links,
            rounds: options.rounds,
            seconds: options.seconds,
            notes: Vec::new(),
            elapsed: Duration::ZERO,
            io_uring: None,
            redirect: None,
            counting: None,
            kept: None,
            yardsticks: Vec::new(),
            create: None,
            disk: None,
            start: None,
        }
    }

    /// Whether each promise holds that was measured.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        promises::judge(self)
    }

    /// The promises that could not be judged for want of a program.
    #[must_use]
    pub fn skips(&self) -> Vec<Skip> {
        promises::skipped(self)
    }

    /// Takes note of whether one more server sent by an io_uring.
    pub(super) fn note_io_uring(&mut self, used: bool) {
        self.io_uring = Some(self.io_uring.unwrap_or(true) && used);
    }

    /// The whole table as a page of Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut page = Page::default();
        page.line("# Measurements");
        page.line("");
        page.line("Written by `make bench`. Ratios compare runs of the same turn; absolute figures drift with the");
        page.line("machine, and gaps under 10 % are not established. Values are medians with [min–max] of the turns.");
        page.line("");
        self.write_setting(&mut page);
        self.write_verdicts(&mut page);
        if let Some(found) = &self.redirect {
            tables::write_redirects(&mut page, self.links, found);
        }
        if let Some(found) = &self.counting {
            click_tables::write_counting(&mut page, self.links, found);
        }
        click_tables::write_disk(&mut page, self);
        if let Some(found) = &self.create {
            tables::write_creates(&mut page, found);
        }
        tables::write_footprint(&mut page, self);
        page.0
    }

    fn write_setting(&self, page: &mut Page) {
        page.header(&["what", "value"]);
        page.row([
            "date".to_owned(),
            self.when.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        ]);
        page.row(["machine".to_owned(), self.machine.to_string()]);
        page.row(["versions".to_owned(), self.versions.join(", ")]);
        page.row(["command".to_owned(), format!("`{}`", self.command)]);
        page.row([
            "setting".to_owned(),
            format!(
                "{} stored links, {} rounds of {} s per run, {:.0} s in all",
                grouped(f64::from(self.links)),
                self.rounds,
                self.seconds,
                self.elapsed.as_secs_f64()
            ),
        ]);
        if let Some(used) = self.io_uring {
            let used = match used {
                true => "in use",
                false => "not in use: answers were sent one by one",
            };
            page.row(["io_uring".to_owned(), used.to_owned()]);
        }
        for note in &self.notes {
            page.row(["note".to_owned(), note.clone()]);
        }
        page.line("");
    }

    fn write_verdicts(&self, page: &mut Page) {
        page.line("## Promises");
        page.line("");
        page.line("In brackets is the interval that holds the true median with a confidence of 95 %; of fewer than six turns, the");
        page.line("least and the greatest. A promise passes when the whole interval keeps it, and fails when the whole interval");
        page.line("breaks it; when the bound lies within, further turns are taken, and then it is too noisy to tell, as are fewer");
        page.line("than three turns. The run fails when a promise fails, when the median of a noisy one breaks it, and when none");
        page.line("passes. Figures without brackets are counts: of bytes, or of clicks.");
        page.line("");
        page.line("```");
        for verdict in self.verdicts() {
            page.line(&verdict.to_string());
        }
        for skip in self.skips() {
            page.line(&skip.to_string());
        }
        page.line("```");
        page.line("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Shape;
    use crate::suite::contest::{Figures, Series};
    use crate::suite::counting::{self, CountingShape, Written};
    use crate::suite::redirects::{self, CacheMemory, ShapeResults};
    use crate::suite::{Standing, creates};

    fn machine() -> Machine {
        Machine {
            processor: "Some Processor".to_owned(),
            cores: 2,
            memory_bytes: 4 << 30,
            kernel: "Linux 6".to_owned(),
            file_system: "ext4 (rw)".to_owned(),
        }
    }

    fn series(name: &str, rounds: &[f64]) -> Series {
        let mut series = Series::new(name);
        series.values = rounds
            .iter()
            .zip(0..)
            .map(|(&per_cpu_second, turn)| Figures {
                turn,
                per_cpu_second,
                per_worker_second: match name.starts_with("curt") {
                    true => per_cpu_second * 17.0 / 16.0,
                    false => 0.0,
                },
                rate: per_cpu_second,
                cpu_us: 1e6 / per_cpu_second,
                p99_us: 1e7 / per_cpu_second,
                ..Figures::default()
            })
            .collect();
        series
    }

    fn results() -> Results {
        let options = SuiteOptions {
            curt: "curt".into(),
            nginx: None,
            work: "work".into(),
            parts: Vec::new(),
            links: 1_000_000,
            rounds: 3,
            seconds: 3.0,
            command: "curt-bench --rounds 3".to_owned(),
        };
        let mut results = Results::new(&options, machine(), vec!["curt 0.1.0".to_owned()]);
        let both = vec![
            series(redirects::CURT_WRITING, &[180e3, 160e3, 130e3]),
            series(redirects::CURT_SILENT, &[200e3, 170e3, 140e3]),
            series(redirects::CURT_USERS, &[180e3, 144e3, 117e3]),
            series(redirects::NGINX_PLAIN, &[100e3, 100e3, 100e3]),
            series(redirects::NGINX_LOG, &[80e3, 80e3, 80e3]),
        ];
        results.redirect = Some(RedirectResults {
            shapes: vec![ShapeResults {
                shape: Shape::Minimal,
                saturated: both.clone(),
                offered: both,
                offered_rate: 50_000.0,
            }],
            memory: CacheMemory {
                links: 1e6,
                counted_bytes: 150.0,
                resident_growth_bytes: 250.0,
                resident_before: 1e7,
                resident_after: 2.6e8,
            },
            clicks_dropped: 0,
        });
        results.note_io_uring(true);
        add_clicks(&mut results);
        results.create = Some(CreateResults {
            series: vec![
                series(creates::SINGLE_ROWS, &[5e3, 5e3, 5e3]),
                series(creates::GROUPED_ROWS, &[30e3, 30e3, 30e3]),
                series(creates::HTTP_SINGLE, &[20e3, 10e3, 20e3]),
                series(creates::HTTP_BULK, &[27e3, 27e3, 18e3]),
            ],
        });
        results
    }

    fn add_clicks(results: &mut Results) {
        results.counting = Some(CountingResults {
            shapes: vec![CountingShape {
                shape: Shape::Browser,
                saturated: vec![
                    series(counting::ZIPF, &[90e3, 125e3, 110e3]),
                    series(counting::HOT, &[130e3, 130e3, 130e3]),
                    series(counting::UNCOUNTED, &[100e3, 140e3, 125e3]),
                ],
                offered: Vec::new(),
                offered_rate: 0.0,
            }],
            written: vec![Written {
                name: counting::ZIPF,
                clicks: 1_000,
                bytes: 90_000,
            }],
            clicks_dropped: 0,
        });
        results.kept = Some(KeptResults {
            clicks: 1_000_000,
            written_per_click: 80.0,
            written_per_click_few: 900.0,
            clicks_few: 15_000,
            kept_per_click: 31.0,
            counts_per_click: 12.5,
            tables: vec![("click_blocks".to_owned(), 18.0), ("tiny".to_owned(), 0.01)],
        });
    }

    #[test]
    fn the_page_holds_the_machine_the_figures_and_their_ratios() {
        let page = results().to_markdown();
        for part in [
            "Some Processor, 2 cores, 4.0 GiB memory, Linux 6, data on ext4 (rw)",
            "`curt-bench --rounds 3`",
            "| minimal | curt, clicks written down | 160,000 [130,000–180,000] | 170,000 [138,125–191,250] | 6.25 [5.56–7.69] | 1.60 [1.30–1.80] |",
            "| minimal | nginx `return 302`, access log | 80,000 [80,000–80,000] | – |",
            "| curt over HTTP, 64 connections | 20,000 [10,000–20,000] | 4.00 [2.00–4.00] | 0.67 [0.33–0.67] |",
            "| process growth per cached link | 250.0 B |",
            "| io_uring | in use |",
            "1.70× [1.40–2.00], at least 1.2× wanted",
            "FAIL       memory per cached link",
            "too noisy  CPU per redirect with its click counted, Zipf, browser requests: 9.09 µs [8.00–11.11], at most 10 µs wanted, the goal is 8 µs",
            "skip       p99 while clicks are counted against nginx `return 302` at the same rate, browser requests: nginx is not installed",
            "| of it single clicks | – | – | – | 18.5 B |",
            "per click: `click_blocks` 18.0 B.",
        ] {
            assert!(page.contains(part), "{part:?} is missing in\n{page}");
        }
    }

    #[test]
    fn a_server_that_was_not_kept_busy_is_pointed_out() {
        let mut found = results().redirect.unwrap().shapes.remove(0);
        let set = |found: &mut ShapeResults, busy| {
            let all = found.saturated.iter_mut();
            for figures in all.flat_map(|series| &mut series.values) {
                figures.busy = 0.99;
            }
            for figures in &mut found.saturated[1].values {
                figures.busy = busy;
            }
        };
        set(&mut found, 0.97);
        assert_eq!(found.disturbance(), None);
        set(&mut found, 0.4);
        let warning = found.disturbance().unwrap();
        assert!(warning.contains("only 0.40 of a core"), "{warning}");
    }

    #[test]
    fn every_promise_that_was_measured_is_judged() {
        let verdicts = results().verdicts();
        let found: Vec<(f64, Standing)> = verdicts
            .iter()
            .map(|verdict| {
                let rounded = (verdict.measured.median * 100.0).round() / 100.0;
                (rounded, verdict.standing())
            })
            .collect();
        use Standing::{Fail, Pass, TooNoisy};
        assert_eq!(
            found,
            [
                // Redirects: throughput, the price of users, of clicks, with a log, p99.
                (1.7, Pass),
                (0.85, Fail),
                (0.93, TooNoisy),
                (2.0, Pass),
                (0.59, Pass),
                // Counting: CPU of both kinds, what is left of the rate, bytes, drops; bytes of the mix.
                (9.09, TooNoisy),
                (7.69, Fail),
                (0.89, Pass),
                (90.0, Pass),
                (0.0, Pass),
                (80.0, Pass),
                (18.5, Pass),
                // Single and bulk creates, memory; nothing about what was not measured.
                (4.0, TooNoisy),
                (0.9, TooNoisy),
                (250.0, Fail)
            ],
            "{verdicts:?}"
        );
    }
}
