//! Tells a new installation from one whose database is gone.

use std::fs;
use std::path::Path;

use curt_sqlite::Sqlite;

use crate::config::Config;
use crate::wiring::{EngineAddress, EngineKind};

/// The step of the links database after which its clicks are in a file of their own.
const CLICKS_MOVED: &str = "clicks moved";

/// Refuses to begin with an empty database beside a spool that was used: it would be a new installation with 404 for
/// every link, and with the key of a new owner.
pub(crate) fn refuse(config: &Config) -> anyhow::Result<()> {
    let Some(clicks) = &config.clicks else {
        return Ok(());
    };
    if !clicks.folder.join("id").exists() {
        return Ok(());
    }
    let store = &config.store;
    for (setting, address) in [
        ("store.links", &store.links),
        ("store.clicks", &store.clicks),
    ] {
        if !is_gone(address) || (setting == "store.clicks" && is_made_by_upgrade(&store.links)) {
            continue;
        }
        anyhow::bail!(
            "{setting}: {} is missing or empty, and {} shows that it was in use: restore it from a backup; or, to begin \
             with an empty one, run \"curt migrate --new\" with the same settings",
            address.path().display(),
            clicks.folder.display(),
        );
    }
    Ok(())
}

fn is_gone(address: &EngineAddress) -> bool {
    let is_empty = |path: &Path| fs::metadata(path).map_or(true, |file| file.len() == 0);
    address.kind() == EngineKind::Sqlite && is_empty(address.path())
}

/// Earlier versions kept clicks among the links; they are moved at the start.
fn is_made_by_upgrade(links: &EngineAddress) -> bool {
    links.kind() == EngineKind::Sqlite
        && Sqlite::pending(links.path())
            .is_ok_and(|steps| steps.iter().any(|step| step.name == CLICKS_MOVED))
}
