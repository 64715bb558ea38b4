//! The sums of the four documents that curt was built from, worked out again.
//!
//! Each figure has the words of its document, the value that they state, and the value that follows from what the document
//! assumes. Where both differ by more than rounding, the figure is wrong, and a note says why.

mod a;
mod b;
mod c;
mod d;

use serde::Serialize;

use crate::figure::{bytes, count, odds, rate};
use crate::workload::Workload;

/// A document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SeedDocument {
    A,
    B,
    C,
    D,
}

/// What came of working a figure out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SumVerdict {
    Right,
    /// Right but for rounding, which the note tells where it is large.
    Rounded,
    Wrong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Count,
    Bytes,
    PerSecond,
    BytesPerSecond,
    Share,
}

/// A figure of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedFigure {
    pub part: &'static str,
    /// As the document has it.
    pub quote: &'static str,
    pub stated: f64,
    /// What follows from the document's assumptions.
    pub value: f64,
    unit: Unit,
    pub verdict: SumVerdict,
    /// Why it is wrong, or how it was rounded.
    pub note: &'static str,
}

impl SeedFigure {
    #[must_use]
    pub fn stated_text(&self) -> String {
        self.unit.show(self.stated)
    }

    #[must_use]
    pub fn value_text(&self) -> String {
        self.unit.show(self.value)
    }

    /// A figure that says what follows.
    const fn right(
        part: &'static str,
        quote: &'static str,
        stated: f64,
        value: f64,
        unit: Unit,
    ) -> Self {
        Self {
            part,
            quote,
            stated,
            value,
            unit,
            verdict: SumVerdict::Right,
            note: "",
        }
    }

    const fn rounded(mut self, note: &'static str) -> Self {
        self.verdict = SumVerdict::Rounded;
        self.note = note;
        self
    }

    const fn wrong(mut self, note: &'static str) -> Self {
        self.verdict = SumVerdict::Wrong;
        self.note = note;
        self
    }
}

/// `base` to the power of `exponent`.
const fn power(base: f64, exponent: u32) -> f64 {
    let (mut power, mut left) = (1.0, exponent);
    while left > 0 {
        power *= base;
        left -= 1;
    }
    power
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Count => count(value),
            Self::Bytes => bytes(value),
            Self::PerSecond => rate(value),
            Self::BytesPerSecond => format!("{}/s", bytes(value)),
            Self::Share => odds(value),
        }
    }
}

impl SeedDocument {
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::D];

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|seed| seed.name().eq_ignore_ascii_case(name))
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }

    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::A => "the key factory",
            Self::B => "requirements, API, telemetry, security",
            Self::C => "pre-seeded rows, ranges, regions",
            Self::D => "status table, key file and preload",
        }
    }

    /// Every figure of the document that is a sum or follows from one.
    #[must_use]
    pub fn figures(self) -> Vec<SeedFigure> {
        match self {
            Self::A => a::FIGURES.to_vec(),
            Self::B => b::figures(),
            Self::C => c::FIGURES.to_vec(),
            Self::D => d::FIGURES.to_vec(),
        }
    }

    /// What the document assumes, for a plan of its own.
    #[must_use]
    pub fn workload(self) -> Workload {
        match self {
            Self::A => a::workload(),
            Self::B => b::workload(),
            Self::C => c::workload(),
            Self::D => d::workload(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(figure: &SeedFigure) -> f64 {
        (figure.stated / figure.value - 1.0).abs()
    }

    #[test]
    fn each_verdict_is_what_the_figures_say() {
        for seed in SeedDocument::ALL {
            for figure in seed.figures() {
                let quote = figure.quote;
                match figure.verdict {
                    SumVerdict::Right => assert!(off(&figure) < 0.01, "{quote}: {figure:?}"),
                    SumVerdict::Rounded => {
                        assert!(
                            off(&figure) < 0.6 && !figure.note.is_empty(),
                            "{quote}: {figure:?}"
                        );
                    }
                    SumVerdict::Wrong => {
                        assert!(off(&figure) > 0.05, "{quote}: {figure:?}");
                        assert!(!figure.note.is_empty(), "{quote}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_figures_that_are_wrong_are_these() {
        let wrong = |seed: SeedDocument| {
            let figures = seed.figures().into_iter();
            let wrong = figures.filter(|figure| figure.verdict == SumVerdict::Wrong);
            wrong
                .map(|figure| (figure.stated_text(), figure.value_text()))
                .collect::<Vec<_>>()
        };
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect()
        };
        assert_eq!(
            wrong(SeedDocument::A),
            pairs(&[
                ("5.48 M", "167 M"),
                ("5.50 M", "183 k"),
                ("93.8", "100"),
                ("16.0 TB", "64.0 TB"),
                ("200 TB", "2.25 PB"),
            ])
        );
        assert_eq!(
            wrong(SeedDocument::B),
            pairs(&[
                ("2.50 GB", "250 GB"),
                ("15.0 T", "30.0 B"),
                ("256", "64"),
                ("1.00 T", "30.0 B"),
                ("1 in 400", "25.0 %"),
                ("10", "1.00 k"),
            ])
        );
        assert_eq!(
            wrong(SeedDocument::C),
            pairs(&[
                ("3.51 k/s", "3.80 k/s"),
                ("3.51 k/s", "228/s"),
                ("720 B", "72.0 B"),
            ])
        );
        assert_eq!(wrong(SeedDocument::D), []);
    }
}
