//! Packs the relative relocations of the executable where the C library can read them: 24 bytes for every pointer in the
//! constants, two mebibytes of the file, become a few bits each. They are read, and stay in memory, at every start.

use std::env;
use std::process::Command;

/// The first glibc that reads them.
const GLIBC_MIN: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if runs_where_it_is_built() && glibc_version().is_some_and(|version| version >= GLIBC_MIN) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn runs_where_it_is_built() -> bool {
    env::var("TARGET") == env::var("HOST")
        && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux")
        && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|library| library == "gnu")
}

/// The C library of this machine; `None` where nobody tells.
fn glibc_version() -> Option<(u32, u32)> {
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let told = String::from_utf8(told.ok()?.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
