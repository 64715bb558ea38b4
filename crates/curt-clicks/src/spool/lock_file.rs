//! One process per spool: two writers would overwrite each other's records. The lock belongs to the open file: it goes
//! when the process does, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use curt_core::{ErrorKind, PortError, PortResult};

use super::{BACKEND, unusable};

const NAME: &str = "lock";
const OP: &str = "lock the spool";

/// Held for as long as it lives.
#[derive(Debug)]
pub(super) struct LockFile {
    locked: File,
}

impl LockFile {
    pub(super) fn acquire(folder: &Path) -> PortResult<Self> {
        let path = folder.join(NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| unusable(OP, &path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(folder, &mut file)),
            Err(TryLockError::Error(error)) => return Err(unusable(OP, &path, error)),
        }
        // The number is for the other process's error message only: a disk too full to hold it is no reason to stop.
        let noted = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = noted {
            tracing::debug!(%error, "the spool's lock file does not name this process");
        }
        Ok(Self { locked: file })
    }
}

/// Closing would not be enough while a process that is being started still shares the open file.
impl Drop for LockFile {
    fn drop(&mut self) {
        if let Err(error) = self.locked.unlock() {
            tracing::debug!(%error, "the spool's lock goes with its file");
        }
    }
}

fn held(folder: &Path, lock: &mut File) -> PortError {
    let mut pid = String::new();
    let known = lock.rewind().and_then(|()| lock.read_to_string(&mut pid));
    let holder = match known {
        Ok(_) if !pid.trim().is_empty() => format!("process {}", pid.trim()),
        _ => "another process".to_owned(),
    };
    let detail = format!(
        "{} is in use by {holder}: stop that server, or give this one a spool of its own",
        folder.display()
    );
    PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail)
}
