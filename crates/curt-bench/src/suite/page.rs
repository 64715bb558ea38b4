//! Figures as cells of a Markdown page.

use std::fmt::Write as _;

use super::contest::{Figures, Series};
use crate::median::{Spread, grouped};

/// Markdown, line by line.
#[derive(Default)]
pub(super) struct Page(pub(super) String);

impl Page {
    pub(super) fn line(&mut self, text: &str) {
        // Writing into a string cannot fail.
        let _written = writeln!(self.0, "{text}");
    }

    pub(super) fn header(&mut self, names: &[&str]) {
        self.line(&format!("| {} |", names.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(names.len())));
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }
}

pub(super) fn dash() -> String {
    "–".to_owned()
}

pub(super) fn whole(series: &Series, figure: fn(&Figures) -> f64) -> String {
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
pub(super) fn worker(series: &Series) -> String {
    let figure: fn(&Figures) -> f64 = |figures| figures.per_worker_second;
    series
        .spread(figure)
        .filter(|spread| spread.median > 0.0)
        .map_or_else(dash, |_| whole(series, figure))
}

pub(super) fn whole_median(series: &Series, figure: fn(&Figures) -> f64) -> String {
    series
        .spread(figure)
        .map_or_else(dash, |spread| grouped(spread.median))
}

pub(super) fn median(series: &Series, figure: fn(&Figures) -> f64) -> String {
    series
        .spread(figure)
        .map_or_else(dash, |spread| format!("{:.2}", spread.median))
}

pub(super) fn fine(spread: Option<Spread>) -> String {
    spread.map_or_else(dash, |spread| format!("{spread:.2}"))
}
