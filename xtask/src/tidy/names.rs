//! Metrics and log events: each is named once, as a documented constant that is used, and documents name no other.

use std::collections::HashSet;

use super::Finding;
use crate::workspace::{Source, Workspace};

const MODULES: [&str; 2] = ["metric", "event"];

/// A constant of one of the [`MODULES`].
struct Name<'a> {
    module: &'static str,
    constant: &'a str,
    value: &'a str,
    line: usize,
    is_documented: bool,
}

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut product = workspace.product();
    let declared = product.find_map(|(path, source)| Some((path, read(source)?)));
    let Some((file, names)) = declared else {
        let mend = "`pub mod metric` and `pub mod event` hold the names of the product";
        return vec![Finding::new(
            "crates",
            1,
            "metrics and events are named nowhere",
            mend,
        )];
    };
    let used = used_paths(workspace, file);
    let mut findings = Vec::new();
    for name in &names {
        let Name {
            module,
            constant,
            line,
            ..
        } = *name;
        if !name.is_documented {
            let mend = "say in a doc comment when it is counted or logged, and with which labels";
            findings.push(Finding::new(
                file,
                line,
                format!("{module}::{constant} has no doc comment"),
                mend,
            ));
        }
        if !used.contains(&(module, constant)) {
            findings.push(Finding::new(
                file,
                line,
                format!("{module}::{constant} is not used"),
                "delete it",
            ));
        }
    }
    for (path, source) in workspace.product().filter(|(path, _)| *path != file) {
        findings.extend(literals(path, source, &names, file));
    }
    let defaults = workspace
        .texts
        .iter()
        .filter(|(path, _)| path.ends_with("default.toml"));
    let defaults = defaults.map(|(path, text)| (path.as_str(), text.as_str()));
    for (path, text) in workspace.documents().chain(defaults) {
        findings.extend(unknown_metrics(workspace, path, text, &names));
    }
    findings
}

/// Reads the constants of the file that has all modules.
fn read(source: &Source) -> Option<Vec<Name<'_>>> {
    let mut names = Vec::new();
    for module in MODULES {
        let start = source
            .text
            .lines()
            .position(|line| line == format!("pub mod {module} {{"))?;
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in lines
            .iter()
            .enumerate()
            .skip(start + 1)
            .take_while(|(_, line)| **line != "}")
        {
            let declared = line
                .trim()
                .strip_prefix("pub const ")
                .and_then(|rest| rest.split_once(": &str = \""));
            if let Some((constant, value)) = declared {
                names.push(Name {
                    module,
                    constant,
                    value: value.trim_end_matches("\";"),
                    line: index + 1,
                    is_documented: lines[index - 1].trim().starts_with("///"),
                });
            }
        }
    }
    Some(names)
}

/// Returns the paths such as `metric::LINKS` that product code outside of `file` has.
fn used_paths<'a>(workspace: &'a Workspace, file: &str) -> HashSet<(&'a str, &'a str)> {
    let mut used = HashSet::new();
    for (_, source) in workspace.product().filter(|(path, _)| *path != file) {
        let tokens = source.layers.tokens();
        for four in tokens
            .windows(4)
            .filter(|four| four[0].line <= source.product_lines)
        {
            if MODULES.contains(&four[0].text) && four[1].text == ":" && four[2].text == ":" {
                used.insert((four[0].text, four[3].text));
            }
        }
    }
    used
}

/// Finds names that are spelt out where the constant belongs.
fn literals(path: &str, source: &Source, names: &[Name<'_>], file: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().take(source.product_lines).enumerate() {
        let metric = names
            .iter()
            .find(|name| name.module == "metric" && line.contains(&format!("\"{}\"", name.value)));
        if metric.is_some()
            || line.trim_start().starts_with("event = \"")
            || line.contains("(event = \"")
        {
            let mend = format!("use the constant in {file}");
            findings.push(Finding::new(
                path,
                index + 1,
                "spells out the name of a metric or event",
                mend,
            ));
        }
    }
    findings
}

fn unknown_metrics(
    workspace: &Workspace,
    path: &str,
    text: &str,
    names: &[Name<'_>],
) -> Vec<Finding> {
    let is_known = |found: &str| {
        let stem = ["_total", "_sum", "_count", "_bucket"]
            .iter()
            .find_map(|suffix| found.strip_suffix(suffix));
        let mut metrics = names.iter().filter(|name| name.module == "metric");
        metrics.any(|name| name.value == found || Some(name.value) == stem)
    };
    // `curt_http=debug` is a filter of the log by crate.
    let is_crate = |found: &str| {
        workspace
            .texts
            .contains_key(&format!("crates/{}/Cargo.toml", found.replace('_', "-")))
    };
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for found in line.split(|sign: char| !matches!(sign, 'a'..='z' | '_' | '0'..='9')) {
            let is_name = found.starts_with("curt_") && found.len() > "curt_".len();
            if is_name && !is_known(found) && !is_crate(found) {
                let what = format!("{found} is no metric");
                findings.push(Finding::new(
                    path,
                    index + 1,
                    what,
                    "name it as the product does",
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_unused_undocumented_or_spelt_out_are_found() {
        let names = "pub mod metric {\n    /// Links.\n    pub const LINKS: &str = \"curt_links\";\n    pub const KEYS: &str = \"curt_keys\";\n}\npub mod event {\n    /// Started.\n    pub const STARTED: &str = \"started\";\n}\n";
        let uses =
            "fn a() { metric::LINKS; metric::KEYS; \"curt_keys\"; }\n    event = \"stopped\",\n";
        let workspace = Workspace::of(&[
            ("crates/core/src/names.rs", names),
            ("crates/curt/src/main.rs", uses),
            ("crates/curt-http/Cargo.toml", ""),
            (
                "docs/a.md",
                "curt_links_total, curt_http=debug, curt_ghosts_total",
            ),
        ]);
        let found: Vec<String> = check(&workspace)
            .into_iter()
            .map(|finding| format!("{}:{}", finding.line, finding.what))
            .collect();
        assert_eq!(
            found,
            [
                "4:metric::KEYS has no doc comment",
                "8:event::STARTED is not used",
                "1:spells out the name of a metric or event",
                "2:spells out the name of a metric or event",
                "1:curt_ghosts_total is no metric",
            ]
        );
    }
}
