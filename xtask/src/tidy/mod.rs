//! Rules of the repository that the compiler does not know. Each says where it is broken and how to mend that; what is
//! excepted stands in `tidy.toml` with a reason, or with a number that may only shrink.

mod crates;
mod dependencies;
mod invariants;
mod lints;
mod lists;
mod names;
mod orphans;
mod settings;
mod sizes;
mod types;
mod words;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use self::lists::Lists;
use crate::workspace::Workspace;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    what: String,
    mend: String,
}

impl Finding {
    fn new(file: &str, line: usize, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.into(),
            mend: mend.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            what,
            mend,
        } = self;
        write!(f, "{file}:{line}: {what}\n    {mend}")
    }
}

/// Checks every rule and prints what is broken.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let workspace = Workspace::read(root)?;
    let lists = Lists::read(&workspace)?;
    let mut findings = Vec::new();
    findings.extend(crates::check(&workspace, &lists)?);
    findings.extend(orphans::check(&workspace)?);
    findings.extend(types::check(&workspace, &lists));
    findings.extend(invariants::check(&workspace));
    findings.extend(settings::check(&workspace));
    findings.extend(names::check(&workspace));
    findings.extend(words::check(&workspace, &lists));
    findings.extend(lints::check(&workspace));
    findings.extend(sizes::check(&workspace, &lists));
    findings.extend(dependencies::check(
        &workspace,
        &dependencies::metadata(root)?,
    )?);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} broken rules", findings.len());
    Ok(ExitCode::FAILURE)
}

/// Compares places of one kind with the number that is excepted. More are a finding, each with its place; fewer are a
/// reminder, because others may have removed them meanwhile.
fn ratchet(name: &str, allowed: usize, found: Vec<Finding>) -> Vec<Finding> {
    if found.len() > allowed {
        let count = found.len();
        let mut found = found;
        for finding in &mut found {
            finding.what = format!("{} ({count} of these, {allowed} excepted)", finding.what);
        }
        return found;
    }
    if found.len() < allowed {
        println!(
            "{}: {name} may shrink from {allowed} to {}",
            lists::PATH,
            found.len()
        );
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratchet_shows_every_place_when_there_are_too_many() {
        let places = || {
            vec![
                Finding::new("a.rs", 1, "x", "y"),
                Finding::new("a.rs", 2, "x", "y"),
            ]
        };
        assert_eq!(ratchet("x", 2, places()), []);
        assert_eq!(ratchet("x", 3, places()), []);
        let found = ratchet("x", 1, places());
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[1].to_string(),
            "a.rs:2: x (2 of these, 1 excepted)\n    y"
        );
    }
}
