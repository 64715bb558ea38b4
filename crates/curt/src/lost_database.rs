//! Tells a new installation from one whose database is gone.

use std::fs;
use std::path::Path;

use crate::config::Config;
use crate::wiring::{EngineAddress, EngineKind};

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
        ("store.accounts", &store.accounts),
        ("store.clicks", &store.clicks),
    ] {
        if !is_gone(address) {
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
