//! What an installation left on the disk: its data, its logs, its output.

use std::fs;
use std::io::ErrorKind;
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

/// What is in a file of a server that works on: nothing, if it is gone by now.
pub(crate) fn contents(path: &Path) -> Vec<u8> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        read => read.unwrap(),
    }
}

/// There are many megabytes to look through, a hundred times.
pub(crate) fn holds(bytes: &[u8], part: &[u8]) -> bool {
    memmem::find(bytes, part).is_some()
}
