//! What one link, click or request costs on this build: read from `bench/RESULTS.md`, which `make bench` writes, so
//! that a plan never differs from what was measured last.

use serde::Serialize;

/// As `make bench` left it when this was compiled.
const MEASURED: &str = include_str!("../../../bench/RESULTS.md");

/// Costs per unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// When, on what and of which version: the first rows of the measurements.
    pub date: String,
    pub machine: String,
    pub versions: String,
    /// Processor time of a redirect whose click is counted, in microseconds.
    pub redirect_micros: f64,
    /// Processor time of a durable create over HTTP, in microseconds.
    pub create_micros: f64,
    /// Durable creates in a second that one SQLite file takes.
    pub creates_per_second: f64,
    /// Disk of a link with a target of 60 bytes.
    pub link_bytes: f64,
    /// Memory of a cached link.
    pub cached_link_bytes: f64,
    /// Disk of a click, counts and single click together.
    pub click_bytes: f64,
}

/// The measurements do not have a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostError(&'static str);

impl std::fmt::Display for CostError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "bench/RESULTS.md has no figure for {}: run make bench again",
            self.0
        )
    }
}

impl std::error::Error for CostError {}

impl Costs {
    /// What was measured on this build.
    pub fn measured() -> Result<Self, CostError> {
        Self::read(MEASURED)
    }

    /// Reads measurements in the form in which `make bench` writes them.
    pub fn read(results: &str) -> Result<Self, CostError> {
        let table = |section: &str| {
            let from = results.split(&format!("\n## {section}\n")).nth(1);
            from.and_then(|text| text.split("\n## ").next())
                .unwrap_or_default()
                .to_owned()
        };
        let first = results.split("\n## ").next().unwrap_or_default();
        let (clicks, disk) = (table("Clicks, counted"), table("Clicks on disk"));
        let (creates, size) = (table("Durable creates"), table("Size and start"));
        Ok(Self {
            date: text_of(first, "date", 1)?,
            machine: text_of(first, "machine", 1)?,
            versions: text_of(first, "versions", 1)?,
            redirect_micros: number_of(&clicks, "curt, default settings", 2)?,
            create_micros: number_of(&creates, "curt over HTTP, 64 connections", 4)?,
            creates_per_second: number_of(&creates, "curt over HTTP, 64 connections", 1)?,
            link_bytes: number_of(&size, "disk per link", 1)?,
            cached_link_bytes: number_of(&size, "process growth per cached link", 1)?,
            click_bytes: number_of(&disk, "mix of clicks, default settings", 4)?,
        })
    }
}

/// The cell of the first row that has `name` in one of its first two cells.
fn text_of(table: &str, name: &'static str, column: usize) -> Result<String, CostError> {
    let mut rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    let found = rows.find_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let is_named = cells.iter().take(2).any(|cell| *cell == name);
        is_named
            .then(|| cells.get(column).copied())
            .flatten()
            .map(str::to_owned)
    });
    found.ok_or(CostError(name))
}

/// The number that a cell begins with: what follows is its unit, or the range of the turns.
fn number_of(table: &str, name: &'static str, column: usize) -> Result<f64, CostError> {
    let cell = text_of(table, name, column)?;
    let number = cell.split(' ').next().unwrap_or_default().replace(',', "");
    let number: Option<f64> = number.parse().ok();
    number.filter(|number| *number > 0.0).ok_or(CostError(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measurements_of_this_build_have_every_figure() {
        let costs = Costs::measured().unwrap();
        for (figure, least, most) in [
            (costs.redirect_micros, 1.0, 1_000.0),
            (costs.create_micros, 1.0, 100_000.0),
            (costs.creates_per_second, 10.0, 1e7),
            (costs.link_bytes, 50.0, 5_000.0),
            (costs.cached_link_bytes, 50.0, 5_000.0),
            (costs.click_bytes, 0.1, 5_000.0),
        ] {
            assert!((least..most).contains(&figure), "{figure}: {costs:?}");
        }
        assert!(costs.date.starts_with("20") && costs.versions.contains("curt "));
    }

    #[test]
    fn a_figure_that_is_gone_is_named() {
        let without = MEASURED.replace("| disk per link |", "| disk |");
        let error = Costs::read(&without).unwrap_err();
        assert!(error.to_string().contains("disk per link"), "{error}");
        let broken = MEASURED.replace(
            "process growth per cached link | ",
            "process growth per cached link | about ",
        );
        assert!(Costs::read(&broken).is_err());
    }
}
