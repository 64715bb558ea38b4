//! Orphans: every Rust file is reached by `mod` from a target of its crate; others are not even compiled.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use toml::Table;

use super::Finding;
use crate::workspace::{Source, Workspace};

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for (folder, text) in workspace.manifests() {
        let manifest: Table =
            toml::from_str(text).with_context(|| format!("read {folder}/Cargo.toml"))?;
        open.extend(named_targets(folder, &manifest));
        open.extend(
            workspace
                .sources
                .keys()
                .filter(|path| is_target(folder, path))
                .cloned(),
        );
    }
    while let Some(path) = open.pop() {
        if let Some(source) = workspace.sources.get(&path)
            && reached.insert(path.clone())
        {
            open.extend(children(&path, source));
        }
    }
    let orphans = workspace
        .sources
        .keys()
        .filter(|path| !reached.contains(*path));
    let mend = "declare it with `mod` in its parent, or delete it";
    Ok(orphans
        .map(|path| Finding::new(path, 1, "belongs to no target", mend))
        .collect())
}

/// Returns the paths that the manifest gives its targets.
fn named_targets(folder: &str, manifest: &Table) -> Vec<String> {
    let tables = ["bin", "test", "bench", "example"]
        .into_iter()
        .filter_map(|kind| manifest.get(kind)?.as_array());
    let tables = tables.flatten().chain(manifest.get("lib"));
    let paths =
        tables.filter_map(|target| Some(format!("{folder}/{}", target.get("path")?.as_str()?)));
    paths.collect()
}

/// Whether cargo finds a target there without being told.
fn is_target(folder: &str, path: &str) -> bool {
    let Some(inner) = path
        .strip_prefix(folder)
        .and_then(|inner| inner.strip_prefix('/'))
    else {
        return false;
    };
    matches!(
        inner.split('/').collect::<Vec<_>>()[..],
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// Returns the files that the modules declared in a file may be in.
fn children(path: &str, source: &Source) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_root = matches!(name, "mod.rs" | "lib.rs" | "main.rs") || is_target_file(path);
    let inner = if is_root {
        folder.to_owned()
    } else {
        path.trim_end_matches(".rs").to_owned()
    };
    let mut paths = Vec::new();
    for three in source.layers.tokens().windows(3) {
        if three[0].text == "mod" && three[2].text == ";" {
            let module = three[1].text;
            paths.push(format!("{inner}/{module}.rs"));
            paths.push(format!("{inner}/{module}/mod.rs"));
        }
    }
    // `#[path = "../x.rs"]` is relative to the folder of the file.
    let named = source
        .text
        .split("#[path = \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    paths.extend(named.map(|named| join(folder, named)));
    paths
}

/// Whether the file is a target by its place: modules of `tests/a.rs` are beside it and not in `tests/a/`.
fn is_target_file(path: &str) -> bool {
    let folder = path.rsplit('/').nth(1);
    let above = path.rsplit('/').nth(2);
    matches!(folder, Some("tests" | "benches" | "examples" | "bin"))
        && above != Some("src")
        && !path.contains("/src/")
}

fn join(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in relative.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let workspace = Workspace::of(&[
            (
                "crates/a/Cargo.toml",
                "[[bench]]\nname = \"x\"\npath = \"speed/x.rs\"",
            ),
            (
                "crates/a/src/lib.rs",
                "mod b;\npub mod c;\n// mod lost;\n#[cfg(test)]\nmod tests;",
            ),
            ("crates/a/src/b.rs", "mod d;"),
            ("crates/a/src/b/d.rs", ""),
            ("crates/a/src/c/mod.rs", "mod e;"),
            ("crates/a/src/c/e.rs", ""),
            ("crates/a/src/tests.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/src/c/d.rs", ""),
            ("crates/a/speed/x.rs", ""),
            (
                "crates/a/tests/it/main.rs",
                "#[path = \"../shared/world.rs\"]\nmod world;",
            ),
            ("crates/a/tests/shared/world.rs", ""),
            ("crates/a/tests/plain.rs", "mod beside;"),
            ("crates/a/tests/beside/mod.rs", ""),
        ]);
        let found: Vec<String> = check(&workspace)
            .unwrap()
            .into_iter()
            .map(|finding| finding.file)
            .collect();
        assert_eq!(found, ["crates/a/src/c/d.rs", "crates/a/src/lost.rs"]);
    }
}
