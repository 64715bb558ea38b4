use std::path::Path;
use std::process::Command;

/// A Java program with a small heap and the quick-starting compiler: engines of tests live for seconds.
pub(super) fn command(java: &Path, heap_mebibytes: u32, class_path: &str) -> Command {
    let mut command = Command::new(java);
    command
        .arg(format!("-Xmx{heap_mebibytes}m"))
        .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .args(["-cp", class_path]);
    command
}
