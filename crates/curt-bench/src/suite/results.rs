//! The table of results.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use super::SuiteOptions;
use super::contest::{Figures, Series};
use super::creates::{self, CreateResults};
use super::footprint::{DiskResults, StartResults};
use super::redirects::{self, RedirectResults, ShapeResults};
use super::verdict::{self, Verdict};
use crate::machine::Machine;
use crate::median::{Spread, grouped};

/// Everything that one run found.
#[derive(Clone, Debug)]
pub struct Results {
    when: Timestamp,
    command: String,
    versions: Vec<String>,
    machine: Machine,
    links: u32,
    rounds: u32,
    seconds: f64,
    pub(super) notes: Vec<String>,
    pub(super) elapsed: Duration,
    pub(super) redirect: Option<RedirectResults>,
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
            redirect: None,
            create: None,
            disk: None,
            start: None,
        }
    }

    /// Whether each promise holds that was measured.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        verdict::judge(self)
    }

    /// The whole table as a page of Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut page = Page::default();
        page.line("# Measurements");
        page.line("");
        page.line("Written by `make bench`. Ratios compare runs of the same round; absolute figures drift with the");
        page.line("machine, and gaps under 10 % are not established. Values are medians with [min–max] of the turns.");
        page.line("");
        self.write_setting(&mut page);
        self.write_verdicts(&mut page);
        if let Some(found) = &self.redirect {
            self.write_redirects(&mut page, found);
        }
        if let Some(found) = &self.create {
            write_creates(&mut page, found);
        }
        self.write_footprint(&mut page);
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
        if let Some(found) = &self.redirect {
            let used = match found.io_uring {
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
        page.line("```");
        for verdict in self.verdicts() {
            page.line(&verdict.to_string());
        }
        page.line("```");
        page.line("");
    }

    fn write_redirects(&self, page: &mut Page, found: &RedirectResults) {
        page.line("## Redirects");
        page.line("");
        page.line(&format!(
            "`GET /{{key}}`, Zipf(1.0) over {} links (nginx's map: over its own), 64 keep-alive connections. The server \
             has one worker and",
            grouped(f64::from(self.links))
        ));
        page.line("a core of its own, the generator another. CPU time is the server's, over all its threads. Clicks that are");
        page.line("written down wait in the spool, as nginx's wait in its access log; where they are counted, that is included,");
        page.line("also after the last answer, on the same core. Per worker second counts the redirect worker alone. With accounts");
        page.line("and limits on there are 1,000 users with keys, sessions and limits of their own, and 100,000 blocked hosts.");
        page.line("");
        page.header(&[
            "requests",
            "server",
            "per CPU second",
            "per worker second",
            "CPU µs",
            "× nginx `return 302`",
            "busy",
            "req/s",
        ]);
        for shape in &found.shapes {
            let base = shape.series(redirects::NGINX_PLAIN);
            for series in &shape.saturated {
                page.row([
                    shape.shape.name().to_owned(),
                    series.name.clone(),
                    whole(series, |figures| figures.per_cpu_second),
                    worker(series),
                    fine(series.spread(|figures| figures.cpu_us)),
                    fine(
                        base.and_then(|base| series.ratio(base, |figures| figures.per_cpu_second)),
                    ),
                    median(series, |figures| figures.busy),
                    whole_median(series, |figures| figures.rate),
                ]);
            }
        }
        page.line("");
        if found.shapes.iter().any(|shape| !shape.offered.is_empty()) {
            page.line("Latency at half of nginx's saturated rate, open loop: counted from when a request fell due.");
            page.line("");
            page.header(&[
                "requests",
                "server",
                "req/s",
                "p50 µs",
                "p99 µs",
                "p99 × nginx",
            ]);
            for shape in &found.shapes {
                write_offered(page, shape);
            }
            page.line("");
        }
    }

    fn write_footprint(&self, page: &mut Page) {
        if self.disk.is_none() && self.start.is_none() && self.redirect.is_none() {
            return;
        }
        page.line("## Size and start");
        page.line("");
        page.header(&["what", "value"]);
        let bytes = |bytes: f64| format!("{bytes:.1} B");
        let mebibytes = |bytes: f64| format!("{:.1} MiB", bytes / 1_048_576.0);
        let mut row = |what: &str, value: String| page.row([what.to_owned(), value]);
        if let Some(disk) = self.disk {
            row("disk per link", bytes(disk.bytes_per_link));
            row("of it beyond the target", bytes(disk.beyond_target()));
            row("data file", mebibytes(disk.file_bytes as f64));
        }
        if let Some(found) = &self.redirect {
            let memory = found.memory;
            row("links cached", grouped(memory.links));
            row(
                "cache per link, by its own account",
                bytes(memory.counted_bytes),
            );
            row(
                "process growth per cached link",
                bytes(memory.resident_growth_bytes),
            );
            row(
                "process with a twentieth of the links cached",
                mebibytes(memory.resident_before),
            );
            row(
                "process with all links cached",
                mebibytes(memory.resident_after),
            );
        }
        if let Some(start) = self.start {
            row(
                "start to the first redirect, data file not in memory",
                format!("{:.0} ms", start.millis),
            );
            row("process just started", mebibytes(start.resident_bytes));
        }
        page.line("");
    }
}

fn write_offered(page: &mut Page, shape: &ShapeResults) {
    let base = shape.offered_series(redirects::NGINX_PLAIN);
    for series in &shape.offered {
        page.row([
            shape.shape.name().to_owned(),
            series.name.clone(),
            grouped(shape.offered_rate),
            whole(series, |figures| figures.p50_us),
            whole(series, |figures| figures.p99_us),
            fine(base.and_then(|base| series.ratio(base, |figures| figures.p99_us))),
        ]);
    }
}

fn write_creates(page: &mut Page, found: &CreateResults) {
    page.line("## Durable creates");
    page.line("");
    page.line("Every link is on the disk (`synchronous=FULL`) before it is acknowledged. Both sides write into copies of the");
    page.line("same file on the same file system; SQLite alone runs on one thread, without HTTP and without judging keys.");
    page.line("");
    page.header(&[
        "how",
        "links/s",
        "× one row per transaction",
        "× groups of 256",
        "CPU µs per link",
        "p99 per request",
    ]);
    let rate: fn(&Figures) -> f64 = |figures| figures.rate;
    let against =
        |series: &Series, base| fine(found.series(base).and_then(|base| series.ratio(base, rate)));
    for series in &found.series {
        let over_http = series
            .spread(|figures| figures.p99_us)
            .filter(|p99| p99.max > 0.0);
        page.row([
            series.name.clone(),
            whole(series, rate),
            against(series, creates::SINGLE_ROWS),
            against(series, creates::GROUPED_ROWS),
            over_http.map_or_else(dash, |_| median(series, |figures| figures.cpu_us)),
            over_http.map_or_else(dash, |p99| format!("{:.1} ms", p99.median / 1e3)),
        ]);
    }
    page.line("");
}

fn dash() -> String {
    "–".to_owned()
}

fn whole(series: &Series, figure: fn(&Figures) -> f64) -> String {
    series.spread(figure).map_or_else(dash, |spread| {
        format!(
            "{} [{}–{}]",
            grouped(spread.median),
            grouped(spread.min),
            grouped(spread.max)
        )
    })
}

/// Only curt's workers are known by name.
fn worker(series: &Series) -> String {
    let figure: fn(&Figures) -> f64 = |figures| figures.per_worker_second;
    series
        .spread(figure)
        .filter(|spread| spread.median > 0.0)
        .map_or_else(dash, |_| whole(series, figure))
}

fn whole_median(series: &Series, figure: fn(&Figures) -> f64) -> String {
    series
        .spread(figure)
        .map_or_else(dash, |spread| grouped(spread.median))
}

fn median(series: &Series, figure: fn(&Figures) -> f64) -> String {
    series
        .spread(figure)
        .map_or_else(dash, |spread| format!("{:.2}", spread.median))
}

fn fine(spread: Option<Spread>) -> String {
    spread.map_or_else(dash, |spread| format!("{spread:.2}"))
}

/// Markdown, line by line.
#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        // Writing into a string cannot fail.
        let _written = writeln!(self.0, "{text}");
    }

    fn header(&mut self, names: &[&str]) {
        self.line(&format!("| {} |", names.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(names.len())));
    }

    fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Shape;
    use crate::suite::redirects::CacheMemory;

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
            .map(|&per_cpu_second| Figures {
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
            series(redirects::CURT_PEOPLE, &[180e3, 144e3, 117e3]),
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
            io_uring: true,
        });
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
            "FAIL  memory per cached link",
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
    fn promises_are_judged_by_medians_within_rounds() {
        let verdicts = results().verdicts();
        let found: Vec<(f64, bool)> = verdicts
            .iter()
            .map(|verdict| ((verdict.measured * 100.0).round() / 100.0, verdict.passes()))
            .collect();
        // Throughput, the price of people, of clicks, with a log, p99; single and bulk creates, memory; nothing about what
        // was not measured.
        assert_eq!(
            found,
            [
                (1.7, true),
                (0.85, false),
                (0.93, false),
                (2.0, true),
                (0.59, true),
                (4.0, true),
                (0.9, true),
                (250.0, false)
            ],
            "{verdicts:?}"
        );
    }
}
