use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use curt_core::{ErrorKind, PortError, PortResult};

const OP: &str = "take the lock file";

/// A lock file, locked for as long as it lives: one process per data file or folder. The lock belongs to the open file:
/// it goes when the process does, however it ends.
#[derive(Debug)]
pub struct LockFile {
    locked: File,
}

impl LockFile {
    /// Locks the file at `path`, which stands for the `what` ("data file") at `guarded`. A file that another process
    /// holds is `Unavailable`, with that process's number.
    pub fn acquire(
        backend: &'static str,
        what: &str,
        path: &Path,
        guarded: &Path,
    ) -> PortResult<Self> {
        let unusable = |error| {
            let detail = format!(
                "{} cannot be opened: check that its folder exists and that this user may write there",
                path.display()
            );
            PortError::new(ErrorKind::Unavailable, backend, OP, detail).with_source(error)
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let detail = format!(
                    "{} is in use by {}: stop that server, or give this one a {what} of its own",
                    guarded.display(),
                    read_holder(&mut file)
                );
                return Err(PortError::new(ErrorKind::Unavailable, backend, OP, detail));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // The number is for the other process's error message only: a disk too full to hold it is no reason to stop.
        let noted = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = noted {
            tracing::debug!(%error, "lock file lacks process number");
        }
        Ok(Self { locked: file })
    }
}

/// Closing would not be enough while a process that is being started still shares the open file.
impl Drop for LockFile {
    fn drop(&mut self) {
        if let Err(error) = self.locked.unlock() {
            tracing::debug!(%error, "lock file not unlocked");
        }
    }
}

fn read_holder(lock: &mut File) -> String {
    let mut pid = String::new();
    let known = lock.rewind().and_then(|()| lock.read_to_string(&mut pid));
    match known {
        Ok(_) if !pid.trim().is_empty() => format!("process {}", pid.trim()),
        _ => "another process".to_owned(),
    }
}
