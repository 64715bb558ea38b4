//! `tidy.toml`: which crate may know which, and what is excepted from the other rules.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::workspace::Workspace;

pub(super) const PATH: &str = "xtask/tidy.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lists {
    /// Libraries by what they stand for, as `not` names them.
    pub(super) libraries: BTreeMap<String, Vec<String>>,
    #[serde(rename = "crate")]
    pub(super) crates: Vec<CrateRow>,
    /// Type names that occur more than once, each with the reason.
    pub(super) types: BTreeMap<String, String>,
    /// Names that say something else than the glossary, and how often they still occur.
    pub(super) words: BTreeMap<String, usize>,
    pub(super) sizes: Sizes,
}

/// What the crates `names` may depend on.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CrateRow {
    pub(super) names: Vec<String>,
    /// Crates of the workspace.
    pub(super) may: Vec<String>,
    /// Kinds of libraries that it may not know.
    pub(super) not: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sizes {
    pub(super) file_lines: usize,
    pub(super) function_lines: usize,
    pub(super) comment_columns: usize,
    pub(super) long_files: usize,
    pub(super) long_functions: usize,
    pub(super) wide_comments: usize,
}

impl Lists {
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let text = workspace
            .texts
            .get(PATH)
            .with_context(|| format!("{PATH} is missing"))?;
        toml::from_str(text).with_context(|| format!("read {PATH}"))
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let empty = "libraries = {}\ncrate = []\ntypes = {}\nwords = {}\n";
        let sizes = "sizes = { file_lines = 4, function_lines = 3, comment_columns = 20, long_files = 0, long_functions = 0, wide_comments = 0 }\n";
        let mut table: toml::Table = toml::from_str(&format!("{empty}{sizes}")).unwrap();
        table.extend(toml::from_str::<toml::Table>(text).unwrap());
        table.try_into().unwrap()
    }
}
