use std::path::Path;

use anyhow::Result;
use rustix::fs::{StatVfs, statvfs};
use tempfile::{Builder, TempDir};

use crate::watchdog::Watchdog;

/// Where Linux keeps files in memory, and how much must be free there: containers often have next to nothing.
const MEMORY: &str = "/dev/shm";
const MEMORY_MIN: u64 = 4 << 30;

/// The private folder of an engine, removed at the end, whatever the end is.
#[derive(Debug)]
pub(super) struct Home {
    // In this order: the watchdog is sent away when there is nothing left to remove.
    folder: TempDir,
    pub(super) watchdog: Watchdog,
}

impl Home {
    pub(super) fn new() -> Result<Self> {
        Self::of(named().tempdir()?)
    }

    /// In memory where there is room: engines that make hundreds of small files for each test, and whose tests do not
    /// ask what a loss of power leaves, are several times as fast there.
    pub(super) fn in_memory() -> Result<Self> {
        let has_room = |disk: &StatVfs| disk.f_bavail * disk.f_frsize >= MEMORY_MIN;
        match statvfs(MEMORY).as_ref().is_ok_and(has_room) {
            true => Self::of(named().tempdir_in(MEMORY)?),
            false => Self::new(),
        }
    }

    fn of(folder: TempDir) -> Result<Self> {
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

fn named() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix("curt-engine-");
    builder
}
