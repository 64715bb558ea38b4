//! What the project promises about its figures.

use super::contest::{Figures, Series};
use super::counting::{self, CountingResults, Written};
use super::creates::{self, CreateResults};
use super::footprint::MIB;
use super::redirects::{self, ShapeResults};
use super::results::Results;
use super::verdict::{Bound, Skip, Verdict};
use crate::load::Shape;
use crate::median::Spread;

/// Redirects per CPU second of ours against another saturated server: ours, the other, the least multiple.
type RatePromise = (&'static str, &'static str, f64, &'static str);

/// Like with like: neither writes clicks down, or both do and neither has counted them yet.
const RATES: [RatePromise; 4] = [
    (
        redirects::CURT_SILENT,
        redirects::NGINX_PLAIN,
        1.2,
        "redirects per CPU second against nginx `return 302`",
    ),
    (
        redirects::CURT_USERS,
        redirects::CURT_SILENT,
        0.95,
        "redirects per CPU second with accounts and limits against without",
    ),
    (
        redirects::CURT_WRITING,
        redirects::CURT_SILENT,
        0.93,
        "redirects per CPU second with clicks written down against without",
    ),
    (
        redirects::CURT_WRITING,
        redirects::NGINX_LOG,
        1.15,
        "redirects per CPU second with clicks written down against nginx with its access log",
    ),
];

const LATENCY: &str = "p99 against nginx `return 302` at the same rate";
const COUNTING_LATENCY: &str =
    "p99 while clicks are counted against nginx `return 302` at the same rate";
const LATENCY_MOST: f64 = 2.0;

const CREATES: [RatePromise; 2] = [
    (
        creates::HTTP_SINGLE,
        creates::SINGLE_ROWS,
        3.0,
        "durable creates over HTTP against one transaction per row",
    ),
    (
        creates::HTTP_BULK,
        creates::GROUPED_ROWS,
        0.7,
        "bulk creates over HTTP against groups of 256 in SQLite alone",
    ),
];

/// Every promise that the results can speak to.
pub(super) fn judge(results: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for found in results.redirect.iter().flat_map(|found| &found.shapes) {
        verdicts.extend(judge_rates(found).map(|(verdict, _)| verdict));
        verdicts.extend(judge_latency(found));
    }
    if let Some(found) = &results.counting {
        verdicts.extend(judge_counting(found));
    }
    if let Some(kept) = &results.kept {
        verdicts.push(Verdict::new(
            "written to disk per click, mix of clicks",
            Spread::exactly(kept.written_per_click),
            Bound::AtMost(counting::WRITTEN_MOST),
            " B",
        ));
        verdicts.push(Verdict::new(
            "kept on disk per single click, mix of clicks",
            Spread::exactly(kept.single_bytes()),
            Bound::AtMost(20.0),
            " B",
        ));
    }
    if let Some(found) = &results.create {
        verdicts.extend(judge_creates(found).map(|(verdict, _)| verdict));
    }
    verdicts.extend(judge_sizes(results));
    verdicts
}

/// The promises that nginx is needed for, when it was not there.
pub(super) fn skipped(results: &Results) -> Vec<Skip> {
    let nginxes = [redirects::NGINX_PLAIN, redirects::NGINX_LOG];
    let rates = RATES
        .iter()
        .filter(|(_, theirs, ..)| nginxes.contains(theirs));
    let mut names = Vec::new();
    for found in results.redirect.iter().flat_map(|found| &found.shapes) {
        if found.series(redirects::NGINX_PLAIN).is_none() {
            let all = rates.clone().map(|(.., what)| *what).chain([LATENCY]);
            names.extend(all.map(|what| with_shape(what, found.shape)));
        }
    }
    for found in results.counting.iter().flat_map(|found| &found.shapes) {
        if found.offered.is_empty() {
            names.push(with_shape(COUNTING_LATENCY, found.shape));
        }
    }
    names
        .into_iter()
        .map(|what| Skip {
            what,
            why: "nginx is not installed",
        })
        .collect()
}

fn with_shape(what: &str, shape: Shape) -> String {
    format!("{what}, {} requests", shape.name())
}

/// Contenders of saturation whose promises more turns may still decide.
pub(super) fn undecided_rates(found: &ShapeResults) -> Vec<&'static str> {
    names_of_undecided(judge_rates(found))
}

/// The same for latencies.
pub(super) fn undecided_latencies(found: &ShapeResults) -> Vec<&'static str> {
    match judge_latency(found).is_some_and(|verdict| verdict.is_undecided()) {
        true => vec![redirects::CURT_SILENT, redirects::NGINX_PLAIN],
        false => Vec::new(),
    }
}

/// The same for creates.
pub(super) fn undecided_creates(found: &CreateResults) -> Vec<&'static str> {
    names_of_undecided(judge_creates(found))
}

/// Whether more turns may still decide a promise about counting.
pub(super) fn is_counting_undecided(found: &CountingResults) -> bool {
    judge_counting(found).iter().any(Verdict::is_undecided)
}

fn names_of_undecided(
    judged: impl Iterator<Item = (Verdict, [&'static str; 2])>,
) -> Vec<&'static str> {
    judged
        .filter(|(verdict, _)| verdict.is_undecided())
        .flat_map(|(_, names)| names)
        .collect()
}

fn judge_rates(found: &ShapeResults) -> impl Iterator<Item = (Verdict, [&'static str; 2])> {
    RATES.into_iter().filter_map(|(ours, theirs, least, what)| {
        let per_cpu = |figures: &Figures| figures.per_cpu_second;
        let ratio = found.series(ours)?.ratio(found.series(theirs)?, per_cpu)?;
        let what = with_shape(what, found.shape);
        let verdict = Verdict::new(what, ratio, Bound::AtLeast(least), "×");
        Some((verdict, [ours, theirs]))
    })
}

fn judge_latency(found: &ShapeResults) -> Option<Verdict> {
    let ours = found.offered_series(redirects::CURT_SILENT)?;
    let theirs = found.offered_series(redirects::NGINX_PLAIN)?;
    let ratio = ours.ratio(theirs, |figures| figures.p99_us)?;
    let what = with_shape(LATENCY, found.shape);
    Some(Verdict::new(what, ratio, Bound::AtMost(LATENCY_MOST), "×"))
}

fn judge_creates(found: &CreateResults) -> impl Iterator<Item = (Verdict, [&'static str; 2])> {
    CREATES
        .into_iter()
        .filter_map(|(ours, theirs, least, what)| {
            let rate = |figures: &Figures| figures.rate;
            let ratio = found.series(ours)?.ratio(found.series(theirs)?, rate)?;
            let verdict = Verdict::new(what, ratio, Bound::AtLeast(least), "×");
            Some((verdict, [ours, theirs]))
        })
}

fn judge_counting(found: &CountingResults) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for shape in &found.shapes {
        let mut add = |what: &str, measured: Option<Spread>, bound, goal, unit| {
            verdicts.extend(measured.map(|measured| Verdict {
                goal,
                ..Verdict::new(with_shape(what, shape.shape), measured, bound, unit)
            }));
        };
        let cpu = |series: Option<&Series>| series?.spread(|figures| figures.cpu_us);
        let zipf = shape.series(counting::ZIPF);
        add(
            "CPU per redirect with its click counted, Zipf",
            cpu(zipf),
            Bound::AtMost(10.0),
            Some(8.0),
            " µs",
        );
        add(
            "CPU per redirect with its click counted, one link",
            cpu(shape.series(counting::HOT)),
            Bound::AtMost(7.0),
            None,
            " µs",
        );
        let without = shape.series(counting::UNCOUNTED);
        add(
            "redirects a second while clicks are counted on the same core against without counting",
            zipf.zip(without)
                .and_then(|(ours, base)| ours.ratio(base, |figures| figures.rate)),
            Bound::AtLeast(0.85),
            None,
            "×",
        );
        let offered = shape
            .offered_series(counting::ZIPF)
            .zip(shape.offered_series(redirects::NGINX_PLAIN));
        add(
            COUNTING_LATENCY,
            offered.and_then(|(ours, theirs)| ours.ratio(theirs, |figures| figures.p99_us)),
            Bound::AtMost(LATENCY_MOST),
            None,
            "×",
        );
    }
    let counted = |written: &&Written| written.name != counting::UNCOUNTED;
    for written in found.written.iter().filter(counted) {
        verdicts.push(Verdict::new(
            format!("written to disk per click, {}", written.name),
            Spread::exactly(written.per_click()),
            Bound::AtMost(counting::WRITTEN_MOST),
            " B",
        ));
    }
    verdicts.push(Verdict::new(
        "clicks dropped in these runs",
        Spread::exactly(found.clicks_dropped as f64),
        Bound::AtMost(0.0),
        "",
    ));
    verdicts
}

fn judge_sizes(results: &Results) -> impl Iterator<Item = Verdict> {
    let memory = results.redirect.as_ref().map(|found| {
        let bytes = Spread::exactly(found.memory.resident_growth_bytes);
        let what = "memory per cached link, by the growth of the process";
        Verdict::new(what, bytes, Bound::AtMost(200.0), " B")
    });
    let disk = results.disk.map(|disk| {
        let bytes = Spread::exactly(disk.beyond_target());
        let what = "disk per link beyond its target";
        Verdict::new(what, bytes, Bound::AtMost(120.0), " B")
    });
    let start = results.start.map(|start| {
        let what = "start to the first redirect";
        Verdict::new(what, start.millis, Bound::AtMost(1_000.0), " ms")
    });
    let idle = results.start.map(|start| {
        let mebibytes = Spread::exactly(start.resident_bytes / MIB);
        let what = "memory of a process that has just started";
        Verdict::new(what, mebibytes, Bound::AtMost(40.0), " MiB")
    });
    let binary = results.start.map(|start| {
        let mebibytes = Spread::exactly(start.binary_bytes / MIB);
        let what = "size of the release executable";
        Verdict::new(what, mebibytes, Bound::AtMost(40.0), " MiB")
    });
    let sizes = [memory, disk, start, idle, binary];
    sizes.into_iter().flatten()
}
