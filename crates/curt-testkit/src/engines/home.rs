use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;

use crate::watchdog::Watchdog;

/// The private folder of an engine, removed at the end, whatever the end is.
#[derive(Debug)]
pub(super) struct Home {
    // In this order: the watchdog is sent away when there is nothing left to remove.
    folder: TempDir,
    pub(super) watchdog: Watchdog,
}

impl Home {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("curt-engine-").tempdir()?;
        let watchdog = Watchdog::of(folder.path())?;
        Ok(Self { folder, watchdog })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What engines print goes here, through all their restarts.
    pub(super) fn log(&self) -> std::path::PathBuf {
        self.path().join("log")
    }
}
