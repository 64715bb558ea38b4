//! Counts lines of product code: `src` without tests, and without the crates that are not shipped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::workspace::{Workspace, crate_of};

/// Returns a table of lines per crate, the largest first, and their sum.
pub(crate) fn report(workspace: &Workspace) -> String {
    let mut by_crate: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, source) in workspace.product() {
        *by_crate.entry(crate_of(path).unwrap_or(path)).or_default() += source.product_lines;
    }
    let mut rows: Vec<(&str, usize)> = by_crate.into_iter().collect();
    rows.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    rows.push(("total", rows.iter().map(|(_, lines)| lines).sum()));
    let mut report = String::new();
    for (name, lines) in rows {
        // Writing to a string cannot fail.
        let _ok = writeln!(report, "{lines:>7}  {name}");
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_adds_up() {
        let workspace = Workspace::of(&[
            ("crates/a/src/lib.rs", "1\n2\n"),
            ("crates/b/src/lib.rs", "1\n2\n3\n"),
            ("crates/b/src/c.rs", "1\n"),
        ]);
        assert_eq!(
            report(&workspace),
            "      4  b\n      2  a\n      6  total\n"
        );
    }
}
