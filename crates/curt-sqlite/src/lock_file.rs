//! One server per data file.
//!
//! SQLite itself would let two servers share the file, and each would then serve stale links from its own cache. So a
//! server holds `<file>.lock`. The lock belongs to the open file: it goes when the process does, however it ends.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use curt_adapter_kit::LockFile;
use curt_core::PortResult;

use super::failure::BACKEND;

/// Takes the lock of a data file.
pub(super) fn acquire(data_file: &Path) -> PortResult<LockFile> {
    let path = beside(data_file, ".lock");
    LockFile::acquire(BACKEND, "data file", &path, data_file)
}

/// `path` with `suffix` added to the file's name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The other process that holds a write lock on the data file or its index of the log, where the system tells.
#[cfg(target_os = "linux")]
pub(super) fn foreign_writer(data_file: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    let inodes: Vec<String> = [data_file.to_path_buf(), beside(data_file, "-shm")]
        .iter()
        .filter_map(|path| path.metadata().ok())
        .map(|metadata| metadata.ino().to_string())
        .collect();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // "7: POSIX  ADVISORY  WRITE 1234 08:01:5678 120 120"
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, place, ..] = words.as_slice() else {
            return None;
        };
        let inode = place.rsplit(':').next()?;
        let pid: u32 = pid.parse().ok()?;
        (pid != std::process::id() && inodes.iter().any(|own| own == inode)).then_some(pid)
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn foreign_writer(_data_file: &Path) -> Option<u32> {
    None
}
