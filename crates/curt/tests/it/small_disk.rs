//! A file system that a test can fill.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use curt_testkit::skipped;

const DISK_MIB: usize = 40;
const BALLAST_MIB: usize = 16;

/// A small file system of its own; unmounted when dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// With a ballast that makes room later; `None`, and said so, where nothing can be mounted.
    pub(crate) fn mount(place: &Path) -> Option<Self> {
        match Self::try_mount(place, DISK_MIB) {
            Ok(disk) => {
                fs::write(disk.0.join("ballast"), vec![0; BALLAST_MIB << 20]).unwrap();
                Some(disk)
            }
            Err(reason) => {
                say_skipped(&reason);
                None
            }
        }
    }

    /// Of this size and empty.
    pub(crate) fn mount_empty(place: &Path, mib: usize) -> Option<Self> {
        Self::try_mount(place, mib)
            .map_err(|reason| say_skipped(&reason))
            .ok()
    }

    /// What can still be written.
    pub(crate) fn free_bytes(&self) -> u64 {
        let disk = rustix::fs::statvfs(&self.0).unwrap();
        disk.f_bavail * disk.f_frsize
    }

    fn try_mount(place: &Path, mib: usize) -> Result<Self, String> {
        fs::create_dir_all(place).map_err(|error| error.to_string())?;
        let size = format!("size={mib}m");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(place)
            .output()
            .map_err(|error| format!("mount cannot be started: {error}"))?;
        match output.status.success() {
            true => Ok(Self(place.to_owned())),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Writes until nothing more fits.
    pub(crate) fn fill_up(&self) {
        let fill = |chunk: usize| {
            let mut file = fs::File::options()
                .create(true)
                .append(true)
                .open(self.0.join("rest"))
                .unwrap();
            let zeros = vec![0; chunk];
            while io::Write::write_all(&mut file, &zeros).is_ok() {}
        };
        fill(1_024 * 1_024);
        fill(4_096);
    }

    pub(crate) fn make_room(&self) {
        for name in ["ballast", "rest"] {
            fs::remove_file(self.0.join(name)).unwrap();
        }
    }
}

fn say_skipped(reason: &str) {
    skipped::say(
        "full_disk",
        &format!("no small file system can be mounted here: {reason}"),
    );
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("could not unmount {}", self.0.display());
        }
    }
}
