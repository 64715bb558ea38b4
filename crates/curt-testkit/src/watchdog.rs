use std::fmt::Display;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

/// Reads which process groups are there. When its input ends, it ends those that are left, unmounts what is mounted in the
/// folder and removes it. Removes the folder twice: what an engine started outside of its group ends a moment later, and
/// may still write.
const SCRIPT: &str = r#"
groups=' '
while read -r what group; do
  case $what in
    guard) groups="$groups$group " ;;
    forget) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
    done) exit 0 ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
[ -n "$1" ] || exit 0
while read -r _ place _; do
  case $place in "$1"/*) umount -l "$place" ;; esac
done </proc/mounts
rm -rf -- "$1"
sleep 1
rm -rf -- "$1"
"#;

/// A process that ends what tests have started and removes its folder when the tests are gone, even if they were killed:
/// nothing in this process could. It notices by the end of a pipe whose other end only this process holds.
#[derive(Debug)]
pub(crate) struct Watchdog {
    process: Child,
    line: Mutex<Option<ChildStdin>>,
}

impl Watchdog {
    /// Guards a folder and whatever will run in it.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "watchdog"]).arg(folder);
        Self::start(command)
    }

    /// Guards processes alone.
    pub(crate) fn of_processes() -> Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "watchdog", ""]);
        Self::start(command)
    }

    fn start(mut command: Command) -> Result<Self> {
        let mut process = command
            .current_dir("/")
            .process_group(0) // a Ctrl-C for the tests is not for it
            .stdin(Stdio::piped())
            .stdout(Stdio::null()) // or whoever reads the tests' output would wait for its end
            .stderr(Stdio::null())
            .spawn()
            .context("could not start a watchdog")?;
        let line = Mutex::new(process.stdin.take());
        Ok(Self { process, line })
    }

    /// From now on, this is a group to end.
    pub(crate) fn guard(&self, group: u32) -> Result<()> {
        self.tell(format_args!("guard {group}"))
    }

    /// The group has ended; its number may come to belong to others.
    pub(crate) fn forget(&self, group: u32) -> Result<()> {
        self.tell(format_args!("forget {group}"))
    }

    fn tell(&self, words: impl Display) -> Result<()> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line.as_mut().context("the watchdog has no input")?;
        // In one write: it must not hear half of a line when this process is killed.
        let words = format!("{words}\n");
        line.write_all(words.as_bytes())
            .context("the watchdog is gone")
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        self.tell("done").ok();
        drop(self.line.lock().map(|mut line| line.take()));
        self.process.wait().ok();
    }
}
