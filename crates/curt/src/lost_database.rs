//! Tells a new installation from one whose database is gone.

use crate::config::Config;
use crate::data;

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
    let nodes = store.links_nodes.iter();
    let nodes = nodes.map(|node| ("store.links", node));
    for (setting, address) in nodes.chain([
        ("store.accounts", &store.accounts),
        ("store.clicks", &store.clicks),
    ]) {
        if !data::is_missing(address) {
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
