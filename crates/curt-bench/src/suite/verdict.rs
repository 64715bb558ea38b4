//! Whether the figures keep the project's promises.

use std::fmt;

use super::contest::Figures;
use super::results::Results;
use super::{creates, redirects};
use crate::load::Shape;
use crate::median::Spread;

/// One promise and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub what: String,
    pub measured: f64,
    /// Of the turns, where there were several.
    pub spread: Option<Spread>,
    pub bound: Bound,
    pub unit: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Verdict {
    #[must_use]
    pub fn passes(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.measured >= least,
            Bound::AtMost(most) => self.measured <= most,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.passes() { "pass" } else { "FAIL" };
        let (relation, bound) = match self.bound {
            Bound::AtLeast(least) => ("at least", least),
            Bound::AtMost(most) => ("at most", most),
        };
        let (measured, unit) = (self.measured, self.unit);
        write!(f, "{word}  {}: {measured:.2}{unit}", self.what)?;
        if let Some(spread) = self.spread {
            write!(f, " [{:.2}–{:.2}]", spread.min, spread.max)?;
        }
        write!(f, ", {relation} {bound}{unit} wanted")
    }
}

/// Every promise that the results can speak to.
pub(super) fn judge(results: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for shape in Shape::BOTH {
        verdicts.extend(redirect_verdicts(results, shape));
    }
    verdicts.extend(create_verdicts(results));
    let mut at_most = |what: &str, measured: Option<f64>, spread, most: f64, unit| {
        verdicts.extend(measured.map(|measured| Verdict {
            what: what.to_owned(),
            measured,
            spread,
            bound: Bound::AtMost(most),
            unit,
        }));
    };
    let memory = results.redirect.as_ref().map(|found| found.memory);
    at_most(
        "memory per cached link, by the growth of the process",
        memory.map(|memory| memory.resident_growth_bytes),
        None,
        200.0,
        " B",
    );
    at_most(
        "disk per link beyond its target",
        results.disk.map(|disk| disk.beyond_target()),
        None,
        120.0,
        " B",
    );
    at_most(
        "start to the first redirect",
        results.start.map(|start| start.millis.median),
        results.start.map(|start| start.millis),
        1_000.0,
        " ms",
    );
    verdicts
}

/// What is compared between two saturated servers per CPU second: ours, the other, and the least multiple.
type Promise = (&'static str, &'static str, f64, &'static str);

/// Like with like: neither writes clicks down, or both do and neither has counted them yet.
const PROMISES: [Promise; 4] = [
    (
        redirects::CURT_SILENT,
        redirects::NGINX_PLAIN,
        1.2,
        "redirects per CPU second against nginx `return 302`",
    ),
    (
        redirects::CURT_PEOPLE,
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

fn redirect_verdicts(results: &Results, shape: Shape) -> Vec<Verdict> {
    let found = results
        .redirect
        .iter()
        .flat_map(|found| &found.shapes)
        .find(|one| one.shape == shape);
    let Some(found) = found else {
        return Vec::new();
    };
    let name = shape.name();
    let saturated = PROMISES.into_iter().filter_map(|promise| {
        let (ours, theirs, least, what) = promise;
        let per_cpu = |figures: &Figures| figures.per_cpu_second;
        let ratio = found.series(ours)?.ratio(found.series(theirs)?, per_cpu)?;
        Some(Verdict {
            what: format!("{what}, {name} requests"),
            measured: ratio.median,
            spread: Some(ratio),
            bound: Bound::AtLeast(least),
            unit: "×",
        })
    });
    let offered = found
        .offered_series(redirects::CURT_SILENT)
        .zip(found.offered_series(redirects::NGINX_PLAIN))
        .and_then(|(ours, theirs)| ours.ratio(theirs, |figures| figures.p99_us));
    let latency = offered.map(|ratio| Verdict {
        what: format!("p99 against nginx `return 302` at the same rate, {name} requests"),
        measured: ratio.median,
        spread: Some(ratio),
        bound: Bound::AtMost(2.0),
        unit: "×",
    });
    saturated.chain(latency).collect()
}

fn create_verdicts(results: &Results) -> Vec<Verdict> {
    let Some(found) = &results.create else {
        return Vec::new();
    };
    let against = |ours, theirs, what: &str, least| {
        let ratio = found
            .series(ours)?
            .ratio(found.series(theirs)?, |figures| figures.rate)?;
        Some(Verdict {
            what: what.to_owned(),
            measured: ratio.median,
            spread: Some(ratio),
            bound: Bound::AtLeast(least),
            unit: "×",
        })
    };
    [
        against(
            creates::HTTP_SINGLE,
            creates::SINGLE_ROWS,
            "durable creates over HTTP against one transaction per row",
            3.0,
        ),
        against(
            creates::HTTP_BULK,
            creates::GROUPED_ROWS,
            "bulk creates over HTTP against groups of 256 in SQLite alone",
            0.7,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_on_both_sides() {
        let verdict = |measured, bound| Verdict {
            what: "speed".to_owned(),
            measured,
            spread: None,
            bound,
            unit: "×",
        };
        let good = verdict(1.2, Bound::AtLeast(1.2));
        assert_eq!(good.to_string(), "pass  speed: 1.20×, at least 1.2× wanted");
        assert!(!verdict(1.19, Bound::AtLeast(1.2)).passes());
        assert!(verdict(2.0, Bound::AtMost(2.0)).passes());
        let bad = verdict(2.01, Bound::AtMost(2.0));
        assert!(bad.to_string().starts_with("FAIL"));
        let spread = Spread::of(&[1.0, 1.2, 1.5]);
        let wide = Verdict { spread, ..good };
        assert_eq!(
            wide.to_string(),
            "pass  speed: 1.20× [1.00–1.50], at least 1.2× wanted"
        );
    }
}
