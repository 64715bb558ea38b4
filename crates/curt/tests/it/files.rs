//! What an installation left on the disk: its data, its logs, its output.

use std::fs;
use std::path::{Path, PathBuf};

use memchr::memmem;

/// Every file in `folder` and in the folders in it.
pub(crate) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| all_files(folder)));
    files
}

/// There are many megabytes to look through, a hundred times.
pub(crate) fn holds(bytes: &[u8], part: &[u8]) -> bool {
    memmem::find(bytes, part).is_some()
}
