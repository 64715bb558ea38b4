//! Crate direction: a crate depends on what its row in `tidy.toml` names and on nothing else of the workspace, and on no
//! library that it may not know. Dependencies of tests are free.

use anyhow::{Context, Result};
use toml::Table;

use super::Finding;
use super::lists::{CrateRow, Lists, PATH};
use crate::workspace::{TEST_CRATES, Workspace};

pub(super) fn check(workspace: &Workspace, lists: &Lists) -> Result<Vec<Finding>> {
    let own: Vec<&str> = workspace
        .manifests()
        .filter_map(|(folder, _)| folder.rsplit('/').next())
        .collect();
    let mut findings = Vec::new();
    for (folder, text) in workspace.manifests() {
        let Some(name) = folder.strip_prefix("crates/") else {
            continue;
        };
        let file = format!("{folder}/Cargo.toml");
        let manifest: Table = toml::from_str(text).with_context(|| format!("read {file}"))?;
        let row_of = |name: &str| {
            lists
                .crates
                .iter()
                .find(|row| row.names.iter().any(|row| row == name))
        };
        let Some(row) = row_of(name).or_else(|| row_of("*")) else {
            let mend = format!("add a [[crate]] row to {PATH} that says what it may depend on");
            findings.push(Finding::new(
                &file,
                1,
                format!("crate {name} has no direction"),
                mend,
            ));
            continue;
        };
        for dependency in dependencies(&manifest) {
            findings.extend(judge(&file, text, &own, row, lists, &dependency));
        }
    }
    Ok(findings)
}

/// Returns the names of what the product part of a crate depends on, on any target.
fn dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest
        .get("target")
        .and_then(|targets| targets.as_table());
    let targets = targets
        .into_iter()
        .flat_map(Table::values)
        .filter_map(|target| target.as_table());
    std::iter::once(manifest)
        .chain(targets)
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|kind| table.get(kind)))
        .filter_map(|dependencies| dependencies?.as_table())
        .flat_map(|dependencies| dependencies.keys().cloned())
        .collect()
}

fn judge(
    file: &str,
    text: &str,
    own: &[&str],
    row: &CrateRow,
    lists: &Lists,
    dependency: &str,
) -> Option<Finding> {
    let line = 1 + text
        .lines()
        .position(|line| line.split([' ', '.', '=']).next() == Some(dependency))
        .unwrap_or(0);
    // `*` is for the executable, which connects everything that is shipped.
    let is_allowed =
        |may: &String| may == dependency || (may == "*" && !TEST_CRATES.contains(&dependency));
    if own.contains(&dependency) && !row.may.iter().any(is_allowed) {
        let mend = format!(
            "move the shared part below both, or let the executable connect them; {PATH} has the table"
        );
        return Some(Finding::new(
            file,
            line,
            format!("may not depend on {dependency}"),
            mend,
        ));
    }
    let kind = row.not.iter().find(|kind| {
        let libraries = lists.libraries.get(*kind);
        libraries.is_some_and(|libraries| libraries.iter().any(|library| library == dependency))
    })?;
    let mend = "put what needs it behind a port, into the crate that may know it";
    Some(Finding::new(
        file,
        line,
        format!("may not know {kind}: {dependency}"),
        mend,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: &str = r#"
        libraries = { drivers = ["rusqlite"] }
        crate = [
            { names = ["core"], may = [], not = ["drivers"] },
            { names = ["*"], may = ["core"], not = [] },
            { names = ["curt"], may = ["*"], not = [] },
        ]"#;

    fn findings(core: &str) -> Vec<String> {
        let workspace = Workspace::of(&[
            ("crates/core/Cargo.toml", core),
            ("crates/curt/Cargo.toml", "[dependencies]\nengine = {}"),
            (
                "crates/engine/Cargo.toml",
                "[dependencies]\ncore = {}\nrusqlite = {}",
            ),
        ]);
        let findings = check(&workspace, &Lists::of(LISTS)).unwrap();
        findings
            .iter()
            .map(|finding| format!("{}:{}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn a_crate_that_points_upwards_is_found() {
        assert_eq!(
            findings("[dependencies]\nengine.workspace = true"),
            ["2:may not depend on engine"]
        );
        assert_eq!(
            findings("[build-dependencies]\nengine = {}"),
            ["2:may not depend on engine"]
        );
        assert_eq!(
            findings("[target.'cfg(unix)'.dependencies]\nrusqlite = {}"),
            ["2:may not know drivers: rusqlite"]
        );
        assert_eq!(
            findings("[dev-dependencies]\nengine = {}\nrusqlite = {}"),
            [""; 0]
        );
    }

    #[test]
    fn a_crate_without_a_row_and_a_product_with_the_testkit_are_found() {
        let workspace = Workspace::of(&[("crates/new/Cargo.toml", "")]);
        let findings = check(&workspace, &Lists::of("")).unwrap();
        assert_eq!(findings[0].what, "crate new has no direction");
        let workspace = Workspace::of(&[
            (
                "crates/curt/Cargo.toml",
                "[dependencies]\ncurt-testkit = {}",
            ),
            ("crates/curt-testkit/Cargo.toml", ""),
        ]);
        let findings = check(&workspace, &Lists::of(LISTS)).unwrap();
        assert_eq!(findings[0].what, "may not depend on curt-testkit");
    }
}
