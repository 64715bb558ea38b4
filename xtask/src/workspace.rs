//! The texts of the repository in memory, and which of them are product code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::lex::Layers;

/// Crates that are never part of what is shipped.
pub(crate) const TEST_CRATES: [&str; 2] = ["curt-testkit", "xtask"];
const TEST_FOLDERS: [&str; 3] = ["tests", "benches", "examples"];
const SKIPPED_FOLDERS: [&str; 3] = ["target", "data", "work"];
const KINDS: [&str; 4] = ["rs", "toml", "md", "sql"];

/// One Rust file.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) layers: Layers,
    /// Lines before the inline test module; all lines where there is none, none in a file of tests.
    pub(crate) product_lines: usize,
}

/// All texts by their path from the root, with `/` between folders.
#[derive(Default)]
pub(crate) struct Workspace {
    pub(crate) sources: BTreeMap<String, Source>,
    pub(crate) texts: BTreeMap<String, String>,
}

impl Workspace {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut workspace = Self::default();
        workspace.read_folder(root, "")?;
        Ok(workspace)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !name.starts_with('.') && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                    self.read_folder(&entry.path(), &format!("{path}/"))?;
                }
            } else if kind.is_file() && KINDS.iter().any(|kind| has_extension(&name, kind)) {
                let text =
                    fs::read_to_string(entry.path()).with_context(|| format!("read {path}"))?;
                self.add(path, text);
            }
        }
        Ok(())
    }

    /// Builds a workspace from samples, for tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut workspace = Self::default();
        for (path, text) in files {
            workspace.add((*path).to_owned(), (*text).to_owned());
        }
        workspace
    }

    fn add(&mut self, path: String, text: String) {
        if has_extension(&path, "rs") {
            let source = Source {
                layers: Layers::of(&text),
                product_lines: product_lines(&path, &text),
                text,
            };
            self.sources.insert(path, source);
        } else {
            self.texts.insert(path, text);
        }
    }

    /// Returns the files that have product code.
    pub(crate) fn product(&self) -> impl Iterator<Item = (&str, &Source)> {
        let sources = self
            .sources
            .iter()
            .map(|(path, source)| (path.as_str(), source));
        sources.filter(|(_, source)| source.product_lines > 0)
    }

    /// Returns the texts that describe the product as it is: not the history.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self
            .texts
            .iter()
            .filter(|(path, _)| has_extension(path, "md") && *path != "CHANGELOG.md");
        texts.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the manifests by the folder of their crate.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, text.as_str())))
    }
}

fn has_extension(name: &str, kind: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|found| found == kind)
}

/// Returns the crate that a file under `crates/` belongs to, by its folder.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

/// Whether the file consists of tests, benches or examples, or belongs to a crate that is not shipped.
fn is_test_file(path: &str) -> bool {
    let Some(crate_name) = crate_of(path) else {
        return true;
    };
    let mut folders = path.split('/');
    TEST_CRATES.contains(&crate_name)
        || path.ends_with("/tests.rs")
        || folders.any(|folder| TEST_FOLDERS.contains(&folder))
        || !path.contains("/src/")
}

fn product_lines(path: &str, text: &str) -> usize {
    if is_test_file(path) {
        return 0;
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_tail = |pair: &[&str]| {
        pair[0].trim() == "#[cfg(test)]"
            && pair[1].trim().starts_with("mod ")
            && pair[1].ends_with('{')
    };
    lines.windows(2).position(is_tail).unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_code_ends_where_tests_begin() {
        let tail = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        let workspace = Workspace::of(&[
            ("crates/a/src/lib.rs", tail),
            ("crates/a/src/declared.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/b/tests.rs", "fn b() {}\n"),
            ("crates/a/src/b/tests/c.rs", "fn c() {}\n"),
            ("crates/a/tests/d.rs", "fn d() {}\n"),
            ("crates/a/examples/e.rs", "fn e() {}\n"),
            ("crates/curt-testkit/src/lib.rs", "fn f() {}\n"),
            ("xtask/src/main.rs", "fn g() {}\n"),
        ]);
        let product: Vec<(&str, usize)> = workspace
            .product()
            .map(|(path, source)| (path, source.product_lines))
            .collect();
        assert_eq!(
            product,
            [("crates/a/src/declared.rs", 2), ("crates/a/src/lib.rs", 2)]
        );
    }
}
