//! The tables of redirects, creates and sizes.

use super::contest::{Figures, Series};
use super::creates::{self, CreateResults};
use super::page::{Page, dash, fine, median, whole, whole_median, worker};
use super::redirects::{self, RedirectResults, ShapeResults};
use super::results::Results;
use crate::median::grouped;

pub(super) fn write_redirects(page: &mut Page, links: u32, found: &RedirectResults) {
    page.line("## Redirects");
    page.line("");
    page.line(&format!(
        "`GET /{{key}}`, Zipf(1.0) over {} links (nginx's map: over its own), 64 keep-alive connections. The server \
         has one worker and",
        grouped(f64::from(links))
    ));
    page.line("a core of its own, the generator another. CPU time is the server's, over all its threads. Clicks that are");
    page.line("written down wait in the spool, as nginx's wait in its access log; counting them has a table of its own. Per worker");
    page.line("second counts the redirect worker alone. With accounts");
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
                fine(base.and_then(|base| series.ratio(base, |figures| figures.per_cpu_second))),
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

pub(super) fn write_creates(page: &mut Page, found: &CreateResults) {
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

pub(super) fn write_footprint(page: &mut Page, results: &Results) {
    if results.disk.is_none() && results.start.is_none() && results.redirect.is_none() {
        return;
    }
    page.line("## Size and start");
    page.line("");
    page.header(&["what", "value"]);
    let bytes = |bytes: f64| format!("{bytes:.1} B");
    let mebibytes = |bytes: f64| format!("{:.1} MiB", bytes / 1_048_576.0);
    let mut row = |what: &str, value: String| page.row([what.to_owned(), value]);
    if let Some(disk) = results.disk {
        row("disk per link", bytes(disk.bytes_per_link));
        row("of it beyond the target", bytes(disk.beyond_target()));
        row("data file", mebibytes(disk.file_bytes as f64));
    }
    if let Some(found) = &results.redirect {
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
    if let Some(start) = results.start {
        row(
            "start to the first redirect, data file not in memory",
            format!("{:.0} ms", start.millis),
        );
        row("process just started", mebibytes(start.resident_bytes));
        row("release executable", mebibytes(start.binary_bytes));
    }
    page.line("");
}
