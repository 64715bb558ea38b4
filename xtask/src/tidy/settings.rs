//! Settings: every key of the default file has a comment and is read, and documents name no key that does not exist.

use std::collections::HashMap;

use super::Finding;
use crate::workspace::{Workspace, crate_of};

const FILE: &str = "/config/default.toml";

/// A key of the default file.
struct Setting {
    path: String,
    line: usize,
    is_documented: bool,
}

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let Some((file, text)) = workspace
        .texts
        .iter()
        .find(|(path, _)| path.ends_with(FILE))
    else {
        return vec![Finding::new(
            FILE,
            1,
            "there is no default file",
            "every default stands in one file",
        )];
    };
    let settings = read(text);
    let counts = count_names(workspace, crate_of(file));
    let mut findings = Vec::new();
    for setting in &settings {
        if !setting.is_documented {
            let mend = "say above it what it is for, and the unit where the value has none";
            findings.push(Finding::new(
                file,
                setting.line,
                format!("{} has no comment", setting.path),
                mend,
            ));
        }
        if counts
            .get(last(&setting.path))
            .is_none_or(|count| *count < 2)
        {
            let what = format!("{} is declared at most, and never read", setting.path);
            findings.push(Finding::new(
                file,
                setting.line,
                what,
                "delete it, or use it",
            ));
        }
    }
    for (document, text) in workspace.documents() {
        findings.extend(unknown_keys(document, text, &settings));
    }
    findings
}

/// Reads keys with their sections. One comment may stand for several keys that follow each other.
fn read(text: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut section = String::new();
    let mut is_documented = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            is_documented = true;
        } else if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = format!("{name}.");
            is_documented = false;
        } else if let Some((key, _)) = line.split_once(" = ") {
            settings.push(Setting {
                path: format!("{section}{key}"),
                line: index + 1,
                is_documented,
            });
        } else if line.is_empty() {
            is_documented = false;
        }
    }
    settings
}

/// Counts how often the product code of a crate names each thing.
fn count_names<'a>(workspace: &'a Workspace, owner: Option<&str>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for (_, source) in workspace
        .product()
        .filter(|(path, _)| crate_of(path) == owner)
    {
        for token in source.layers.tokens() {
            *counts.entry(token.text).or_default() += 1;
        }
    }
    counts
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Finds texts such as `` `keys.pool.low` `` that begin with a section and are no key of it.
fn unknown_keys(document: &str, text: &str, settings: &[Setting]) -> Vec<Finding> {
    let is_key = |name: &str| {
        settings.iter().any(|setting| {
            let rest = setting.path.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = quoted.contains('.')
                && quoted
                    .chars()
                    .all(|sign| matches!(sign, 'a'..='z' | '_' | '.'));
            let section = quoted.split('.').next().unwrap_or_default();
            let is_file =
                quoted.ends_with(".rs") || quoted.ends_with(".md") || quoted.ends_with(".db");
            if is_path && !is_file && is_key(section) && !is_key(quoted) {
                let what = format!("`{quoted}` is no setting");
                findings.push(Finding::new(
                    document,
                    index + 1,
                    what,
                    "name the key as the default file does",
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
    fn keys_without_comment_or_use_are_found() {
        let defaults = "# Folder.\ndata_dir = 1\n\n[server]\n# Two of a kind.\nlisten = 1\nworkers = 2\n\nlost = 3\n[log]\nlevel = 4\n";
        let workspace = Workspace::of(&[
            ("crates/curt/config/default.toml", defaults),
            (
                "crates/curt/src/raw.rs",
                "struct Raw { data_dir: X, listen: X, workers: X, lost: X, level: X }\nfn use_all() { raw.data_dir; raw.listen; raw.lost; raw.level }",
            ),
            (
                "README.md",
                "`server.listen`, `server`, `server.ports`, `log.rs`, `server.workers`",
            ),
        ]);
        let found: Vec<String> = check(&workspace)
            .into_iter()
            .map(|finding| format!("{}:{}", finding.line, finding.what))
            .collect();
        assert_eq!(
            found,
            [
                "7:server.workers is declared at most, and never read",
                "9:server.lost has no comment",
                "11:log.level has no comment",
                "1:`server.ports` is no setting",
            ]
        );
    }
}
