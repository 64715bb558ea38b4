//! One server per data file.
//!
//! SQLite itself would let two servers share the file, and each would then serve stale links from its own cache. So a
//! server holds `<file>.lock`. The lock belongs to the open file: it goes when the process does, however it ends.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use curt_core::{ErrorKind, PortError, PortResult};

use super::failure::BACKEND;

const OP: &str = "lock the data file";

/// Held for as long as it lives.
#[derive(Debug)]
pub(super) struct LockFile {
    locked: File,
}

impl LockFile {
    pub(super) fn acquire(data_file: &Path) -> PortResult<Self> {
        let path = beside(data_file, ".lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| unusable(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(data_file, &mut file)),
            Err(TryLockError::Error(error)) => return Err(unusable(&path, error)),
        }
        // The number is for the other process's error message only: a disk too full to hold it is no reason to stop.
        let noted = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = noted {
            tracing::debug!(%error, "the lock file does not name this process");
        }
        Ok(Self { locked: file })
    }
}

/// Closing would not be enough while a process that is being started still shares the open file.
impl Drop for LockFile {
    fn drop(&mut self) {
        if let Err(error) = self.locked.unlock() {
            tracing::debug!(%error, "the data file's lock goes with its file");
        }
    }
}

/// `path` with `suffix` added to the file's name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn held(data_file: &Path, lock: &mut File) -> PortError {
    let mut pid = String::new();
    let known = lock.rewind().and_then(|()| lock.read_to_string(&mut pid));
    let holder = match known {
        Ok(_) if !pid.trim().is_empty() => format!("process {}", pid.trim()),
        _ => "another process".to_owned(),
    };
    PortError::new(
        ErrorKind::Unavailable,
        BACKEND,
        OP,
        format!(
            "{} is in use by {holder}: stop that server, or give this one a data file of its own",
            data_file.display()
        ),
    )
}

fn unusable(path: &Path, error: std::io::Error) -> PortError {
    PortError::new(
        ErrorKind::Unavailable,
        BACKEND,
        OP,
        format!(
            "{} cannot be opened: check that its folder exists and that this user may write there",
            path.display()
        ),
    )
    .with_source(error)
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
