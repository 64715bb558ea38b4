//! The folder and the files in which an installation keeps its data on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::{Config, ConfigError};
use crate::wiring::{EngineAddress, EngineKind, Part};

/// Makes the folder for everything that a server writes.
pub(crate) fn make_folder(config: &Config) -> anyhow::Result<()> {
    let folder = &config.data_dir;
    fs::create_dir_all(folder)
        .with_context(|| format!("data_dir: could not make {}", folder.display()))
}

/// Refuses to go on where there is no installation: a command that made one would succeed and change nothing that any
/// server knows.
pub(crate) fn require(config: &Config) -> Result<(), ConfigError> {
    let Some(missing) = missing_file(config) else {
        return Ok(());
    };
    Err(ConfigError::new(format!(
        "data_dir: there is no data here: {} is missing. Run this in the folder that the server was started in, or name \
         its data with --set data_dir=FOLDER or its settings with --config FILE. A new installation begins with \
         \"curt serve\", or with \"curt migrate --new\"",
        absolute(&missing).display()
    )))
}

/// The first database file that an installation must have and this one has not.
fn missing_file(config: &Config) -> Option<PathBuf> {
    let files = config.store.addresses().filter(|(part, address)| {
        // Older installations get theirs with the next start.
        *part != Part::Clicks && is_missing(address)
    });
    let mut files = files.map(|(_, address)| address.path().to_owned());
    files.next()
}

/// Whether the address names a file that is absent or empty.
pub(crate) fn is_missing(address: &EngineAddress) -> bool {
    let is_empty = |path: &Path| fs::metadata(path).map_or(true, |file| file.len() == 0);
    address.kind() == EngineKind::Sqlite && is_empty(address.path())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
