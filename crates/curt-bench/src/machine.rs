//! The machine that figures were measured on.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// What a reader needs to know before comparing figures with their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    /// Type and options of the file system that holds the data.
    pub file_system: String,
}

/// Describes this machine, with the file system that `data` lies on.
#[must_use]
pub fn describe(data: &Path) -> Machine {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    Machine {
        processor: value(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: value(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
            .map_or(0, |kib| kib * 1_024),
        kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        file_system: fs::canonicalize(data)
            .ok()
            .and_then(|data| file_system(&read("/proc/self/mounts"), &data))
            .unwrap_or_else(unknown),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The text after `name:` on the first line that starts with it.
fn value(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The mount with the longest path above `data`; of several on one path the last one is on top.
fn file_system(mounts: &str, data: &Path) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            data.starts_with(point)
                .then(|| (point.len(), format!("{kind} ({options})")))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, {:.1} GiB memory, {}, data on {}",
            self.processor,
            self.cores,
            self.memory_bytes as f64 / 1_073_741_824.0,
            self.kernel,
            self.file_system
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_names_the_file_system() {
        let mounts =
            "overlay / overlay rw 0 0\n/dev/a /data ext4 rw,noatime 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
        let on = |path| file_system(mounts, Path::new(path));
        assert_eq!(on("/data/x").as_deref(), Some("ext4 (rw,noatime)"));
        assert_eq!(on("/database").as_deref(), Some("overlay (rw)"));
    }

    #[test]
    fn this_machine_can_be_described() {
        let machine = describe(Path::new("/"));
        assert!(machine.cores >= 1 && machine.memory_bytes > 0);
        assert!(machine.to_string().contains("Linux "));
    }
}
