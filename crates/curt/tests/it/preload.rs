//! Libraries that stand between the server and the system (`LD_PRELOAD`), to change what the server sees of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a library with the C compiler that building the product needs too.
pub(crate) fn build_library(folder: &Path, source: &str) -> PathBuf {
    let (file, library) = (folder.join("preload.c"), folder.join("preload.so"));
    fs::write(&file, source).unwrap();
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &file])
        .arg("-ldl")
        .status();
    assert!(made.unwrap().success());
    library
}
