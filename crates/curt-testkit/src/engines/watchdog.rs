use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

/// Reads process groups, the last of which it ends when its input does, with the folder. Removes the folder twice: what
/// an engine started outside of its group ends a moment later, and may still write.
const SCRIPT: &str = r#"
group=
while read -r line; do
  [ "$line" != done ] || exit 0
  group=$line
done
[ -z "$group" ] || kill -s KILL -- "-$group"
rm -rf -- "$1"
sleep 1
rm -rf -- "$1"
"#;

/// A process that ends an engine and removes its folder when the tests are gone, even if they were killed: nothing
/// in this process could. It notices by the end of a pipe whose other end only this process holds.
#[derive(Debug)]
pub(super) struct Watchdog {
    process: Child,
    line: Option<ChildStdin>,
}

impl Watchdog {
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let mut process = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "watchdog"])
            .arg(folder)
            .current_dir("/")
            .process_group(0) // a Ctrl-C for the tests is not for it
            .stdin(Stdio::piped())
            .stdout(Stdio::null()) // or whoever reads the tests' output would wait for its end
            .stderr(Stdio::null())
            .spawn()
            .context("could not start a watchdog")?;
        let line = process.stdin.take();
        Ok(Self { process, line })
    }

    /// From now on, this is the group to end.
    pub(super) fn guard(&mut self, group: u32) -> Result<()> {
        self.tell(&group.to_string())
    }

    /// The group has ended; its number may come to belong to others.
    pub(super) fn forget(&mut self) -> Result<()> {
        self.tell("")
    }

    fn tell(&mut self, word: &str) -> Result<()> {
        let line = self.line.as_mut().context("the watchdog has no input")?;
        writeln!(line, "{word}").context("the watchdog is gone")
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        self.tell("done").ok();
        drop(self.line.take());
        self.process.wait().ok();
    }
}
