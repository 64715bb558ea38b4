use std::fs;
use std::path::{Path, PathBuf};

use super::Missing;

/// Where `make engines` puts what no package brings.
const CACHE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/engines");

/// The class path with all jars that were fetched for the engine. The Java machine expands the star, so no shell may.
pub(super) fn jars(missing: &Missing, engine: &str) -> Result<String, Missing> {
    Ok(format!("{}/*", library(missing, engine)?.display()))
}

/// One of the jars, by the beginning of its name: the rest is its version.
pub(super) fn jar(missing: &Missing, engine: &str, start: &str) -> Result<PathBuf, Missing> {
    let jars = fs::read_dir(library(missing, engine)?);
    let mut paths = jars.into_iter().flatten().flatten().map(|jar| jar.path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(start)
    };
    paths.find(is_it).ok_or_else(|| missing.clone())
}

/// The program that was built for the engine.
pub(super) fn program(missing: &Missing, engine: &str) -> Result<PathBuf, Missing> {
    missing.file(cached(engine).join(engine))
}

fn library(missing: &Missing, engine: &str) -> Result<PathBuf, Missing> {
    // The description is put beside the jars when they are complete.
    let complete = missing.file(cached(engine).join("pom.xml"))?;
    Ok(complete.with_file_name("lib"))
}

pub(super) fn cached(engine: &str) -> PathBuf {
    Path::new(CACHE).join(engine)
}
