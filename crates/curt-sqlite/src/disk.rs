//! How much room the disk of a file has.

use std::path::Path;

/// Bytes that this user may still write to the disk of `file`, which need not exist; `None` where nobody can tell.
pub(super) fn free_bytes(file: &Path) -> Option<u64> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let disk = rustix::fs::statvfs(folder.unwrap_or(Path::new("."))).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
