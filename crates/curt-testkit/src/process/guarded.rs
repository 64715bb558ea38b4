use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use super::wait;
use crate::watchdog::Watchdog;

/// How long a killed process may take to be gone.
const KILL_TIME_MAX: Duration = Duration::from_secs(30);

/// A child in a process group of its own that does not outlive its test: killed when dropped, and by a watchdog when the
/// tests themselves are killed.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    watchdog: Arc<Watchdog>,
}

impl Guarded {
    pub fn spawn(command: &mut Command) -> Result<Self> {
        Self::spawn_with(command, Arc::new(Watchdog::of_processes()?))
    }

    pub(super) fn spawn_with(command: &mut Command, watchdog: Arc<Watchdog>) -> Result<Self> {
        let child = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("could not start {command:?}"))?;
        let guarded = Self { child, watchdog };
        guarded.watchdog.guard(guarded.child.id())?;
        Ok(guarded)
    }

    /// Ends the process and its group at once and without notice, as `kill -9` does, and returns when it is gone. Fails
    /// when it had ended by itself: that is not the end that the test meant.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the process had ended by itself before it was killed, with {status}");
        }
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let group = self.child.id();
        let leader = Pid::from_raw(i32::try_from(group)?).context("a process without an id")?;
        if self.child.try_wait()?.is_none() {
            // Fails only when all of them end by themselves at this moment.
            kill_process_group(leader, Signal::KILL).ok();
        }
        wait(&mut self.child, KILL_TIME_MAX)?.context("a killed process did not end")?;
        Ok(())
    }
}

impl Deref for Guarded {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; what does not end stays with the watchdog.
        if self.end().is_ok() {
            self.watchdog.forget(self.child.id()).ok();
        }
    }
}
