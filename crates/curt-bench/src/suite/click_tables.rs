//! The tables of clicks.

use super::contest::Figures;
use super::counting::{self, CountingResults};
use super::kept::KeptResults;
use super::page::{Page, dash, fine, median, whole, whole_median};
use super::redirects::NGINX_PLAIN;
use super::results::Results;
use crate::median::{Spread, grouped};

pub(super) fn write_counting(page: &mut Page, links: u32, found: &CountingResults) {
    page.line("## Clicks, counted");
    page.line("");
    page.line("curt as it is installed: all roles, default settings, every click captured, counted and stored. CPU time is that of");
    page.line("all threads from the first request until the spool is empty, divided by the redirects. The server has one core,");
    page.line("the generator another. A window of clicks is written when it takes an eighth of the spool, as it does in these runs,");
    page.line("after `clicks.flush_every`, or when a report is asked for: after the last answer of a run, and for latencies halfway.");
    page.line(&format!(
        "Zipf(1.0) over {} links, each of which was followed once before, or one link alone. The server without the role",
        grouped(f64::from(links))
    ));
    page.line("`clicks` captures all the same (into a spool of 8 GiB, since nothing empties it): the difference is counting alone.");
    page.line("");
    page.header(&[
        "requests",
        "server",
        "CPU µs per redirect and click",
        "req/s",
        "× without counting",
        "counted meanwhile",
    ]);
    let rate: fn(&Figures) -> f64 = |figures| figures.rate;
    for shape in &found.shapes {
        let base = shape.series(counting::UNCOUNTED);
        for series in &shape.saturated {
            let is_curt = series.name != NGINX_PLAIN;
            let against = base.and_then(|base| series.ratio(base, rate));
            page.row([
                shape.shape.name().to_owned(),
                series.name.clone(),
                fine(series.spread(|figures| figures.cpu_us)),
                whole_median(series, rate),
                fine(against.filter(|_| is_curt)),
                median(series, |figures| figures.counted_share),
            ]);
        }
    }
    page.line("");
    if found.shapes.iter().all(|shape| shape.offered.is_empty()) {
        return;
    }
    page.line("Latency while counting, at half of nginx's saturated rate, open loop; halfway a report has the counts written.");
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
        let base = shape.offered_series(NGINX_PLAIN);
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
    page.line("");
}

/// What clicks write and keep, beside the yardsticks.
pub(super) fn write_disk(page: &mut Page, results: &Results) {
    if results.counting.is_none() && results.kept.is_none() && results.yardsticks.is_empty() {
        return;
    }
    page.line("## Clicks on disk");
    page.line("");
    page.line("Written is what the kernel charges the process for (`write_bytes`), the spool and the last checkpoint included. The");
    page.line("mix comes from 1,024 addresses at a time with some hundreds of agents, 2,000 referring hosts, 16 languages and 8 %");
    page.line("bots, Zipf over all links, into an empty clicks database, in four windows. Its times are close, where real clicks");
    page.line("take days. Clicks share what is written at the end of a window: fewer in a window write more each. The server");
    page.line(
        "without the role `clicks` writes the spool alone. The yardstick is SQLite alone with one",
    );
    page.line("`UPDATE … SET hits = hits + 1` per click, as in chhoto-url: it counts and keeps nothing else, and its CPU time is");
    page.line("without HTTP.");
    page.line("");
    write_disk_rows(page, results);
    page.line("");
    if let Some(kept) = &results.kept {
        page.line(&format!(
            "In the clicks database of the mix, per click: {}.",
            list_tables(kept)
        ));
        page.line("");
    }
}

fn write_disk_rows(page: &mut Page, results: &Results) {
    page.header(&[
        "what",
        "clicks",
        "CPU µs",
        "written per click",
        "kept per click",
    ]);
    let bytes = |bytes: f64| format!("{bytes:.1} B");
    for (found, written) in results
        .counting
        .iter()
        .flat_map(|found| found.written.iter().map(move |written| (found, written)))
    {
        let rates = found
            .shapes
            .iter()
            .flat_map(|shape| shape.series(written.name));
        let rates: Vec<f64> = rates
            .flat_map(|series| series.each(|figures| figures.rate))
            .collect();
        let rate = Spread::of(&rates).map_or(0.0, |rates| rates.median);
        page.row([
            format!("{}, all runs", written.name),
            format!(
                "{}, about {}/s",
                grouped(written.clicks as f64),
                grouped(rate)
            ),
            "see above".to_owned(),
            bytes(written.per_click()),
            dash(),
        ]);
    }
    if let Some(kept) = &results.kept {
        let mut row = |what: &str, clicks: String, written: String, kept: String| {
            page.row([what.to_owned(), clicks, dash(), written, kept]);
        };
        row(
            "mix of clicks, default settings",
            grouped(kept.clicks as f64),
            bytes(kept.written_per_click),
            bytes(kept.kept_per_click),
        );
        row("of it counts", dash(), dash(), bytes(kept.counts_per_click));
        row(
            "of it single clicks",
            dash(),
            dash(),
            bytes(kept.single_bytes()),
        );
        row(
            "mix of clicks, a single window",
            grouped(kept.clicks_few as f64),
            bytes(kept.written_per_click_few),
            dash(),
        );
    }
    for yardstick in &results.yardsticks {
        page.row([
            yardstick.name.to_owned(),
            format!("{}/s", grouped(yardstick.per_second)),
            format!("{:.2}", yardstick.cpu_us),
            bytes(yardstick.written_per_click),
            dash(),
        ]);
    }
}

fn list_tables(kept: &KeptResults) -> String {
    let tables = kept.tables.iter().filter(|(_, bytes)| *bytes >= 0.1);
    let tables: Vec<String> = tables
        .map(|(table, bytes)| format!("`{table}` {bytes:.1} B"))
        .collect();
    tables.join(", ")
}
