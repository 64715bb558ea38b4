//! Lints that product crates turn on at their root. The workspace's table of lints cannot leave tests out.

use super::Finding;
use crate::workspace::{Workspace, crate_of};

const ATTRIBUTES: [&str; 3] = [
    "#![cfg_attr(not(test), warn(clippy::disallowed_methods))]",
    "#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]",
    "#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]",
];
/// It measures, and nothing of it is shipped.
const FREE: &str = "curt-bench";

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let roots = workspace.product().filter(|(file, _)| {
        let root = file.ends_with("/src/lib.rs") || file.ends_with("/src/main.rs");
        root && crate_of(file) != Some(FREE)
    });
    let missing = roots.flat_map(|(file, source)| {
        let missing = ATTRIBUTES
            .iter()
            .filter(|text| !source.text.contains(*text));
        missing.map(move |text| Finding::new(file, 1, "does not turn the lints on", *text))
    });
    missing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_crate_without_the_lints_is_found() {
        let right = ATTRIBUTES.join("\n");
        let workspace = Workspace::of(&[
            ("crates/a/src/lib.rs", &right),
            ("crates/b/src/lib.rs", &right[ATTRIBUTES[0].len()..]),
            ("crates/b/src/other.rs", "fn b() {}"),
            ("crates/curt-bench/src/lib.rs", "fn c() {}"),
            ("crates/curt-testkit/src/lib.rs", "fn d() {}"),
        ]);
        let found = check(&workspace);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, "crates/b/src/lib.rs");
    }
}
