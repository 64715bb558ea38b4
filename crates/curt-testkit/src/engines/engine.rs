use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::home::Home;
use super::wait::{LOOK_EVERY, LOOKS_MAX};

/// How much of an engine's log an error shows.
const LOG_LINES_SHOWN: usize = 30;

/// How an engine is started, and started again.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    pub(super) command: Box<dyn Fn() -> Command + Send + Sync>,
    /// Whether it serves: an open port alone says little.
    pub(super) serves: Box<dyn Fn() -> bool + Send + Sync>,
    /// What makes it stop in an orderly way without waiting for its clients.
    pub(super) stop_signal: Signal,
}

/// A process of an engine. Killed when dropped.
///
/// After [`kill`](Self::kill) or [`stop`](Self::stop), [`restart`](Self::restart) brings it back on the same ports and
/// data.
pub struct Engine {
    recipe: Recipe,
    child: Option<Child>,
    // Last: the folder goes after the process.
    home: Home,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.recipe.name, self.folder().display())
    }
}

impl Engine {
    /// Starts the engine on data that is in its home already, and returns when it serves.
    pub(super) fn start(home: Home, recipe: Recipe) -> Result<Self> {
        let mut engine = Self::launch(home, recipe)?;
        engine.wait_until_it_serves()?;
        Ok(engine)
    }

    /// Like [`start`](Self::start), and does not wait: for engines that serve only together with others.
    pub(super) fn launch(home: Home, recipe: Recipe) -> Result<Self> {
        let mut engine = Self {
            recipe,
            child: None,
            home,
        };
        engine.relaunch()?;
        Ok(engine)
    }

    /// Where its data is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// The process, while it is there.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts it (again, after killing it where it still runs) and returns when it serves.
    pub fn restart(&mut self) -> Result<()> {
        self.relaunch()?;
        self.wait_until_it_serves()
    }

    fn relaunch(&mut self) -> Result<()> {
        self.kill()?;
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.home.log())?;
        let mut command = (self.recipe.command)();
        let child = command
            .current_dir(self.home.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("could not start {command:?}"))?;
        let group = child.id();
        self.child = Some(child);
        self.home.watchdog.guard(group)
    }

    pub(super) fn wait_until_it_serves(&mut self) -> Result<()> {
        for _ in 0..LOOKS_MAX {
            // Asked first: an answer could come from something else on its port.
            self.check_running()?;
            if (self.recipe.serves)() {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bail!("{} does not serve: {}", self.recipe.name, self.log_end())
    }

    fn check_running(&mut self) -> Result<()> {
        let child = self.child.as_mut().context("it was not started")?;
        if let Some(status) = child.try_wait()? {
            let name = self.recipe.name;
            bail!("{name} ended with {status}: {}", self.log_end());
        }
        Ok(())
    }

    /// Whether it answers now.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.child.is_some() && (self.recipe.serves)()
    }

    /// Ends it at once and without notice, as `kill -9` does, and returns when it is gone. Harmless where it is not
    /// running.
    pub fn kill(&mut self) -> Result<()> {
        self.end(Signal::KILL)
    }

    /// Asks it to stop, and returns when it is gone.
    pub fn stop(&mut self) -> Result<()> {
        self.end(self.recipe.stop_signal)
    }

    fn end(&mut self, signal: Signal) -> Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let group = child.id();
        let mut members = Members::of(group);
        if child.try_wait()?.is_none() {
            members.signal(signal);
        }
        for _ in 0..LOOKS_MAX {
            if child.try_wait()?.is_some() && members.are_gone() {
                self.child = None;
                return self.home.watchdog.forget(group);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bail!("{} does not end: {}", self.recipe.name, self.log_end())
    }

    /// Stops it from doing anything, as a machine does that swaps or a virtual one that is moved. Its connections stay.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.pid().context("it is not running")?;
        Members::of(pid).signal(signal);
        Ok(())
    }

    /// What it has printed last.
    #[must_use]
    pub fn log_end(&self) -> String {
        let log = fs::read(self.home.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let start = lines.len().saturating_sub(LOG_LINES_SHOWN);
        format!("its log ends with:\n{}", lines[start..].join("\n"))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Fails only when it has ended already, and nobody is left to hear of it.
        self.kill().ok();
    }
}

/// A process with its group and its children: those of PostgreSQL leave the group of their parent.
struct Members {
    leader: u32,
    children: Vec<u32>,
}

impl Members {
    fn of(leader: u32) -> Self {
        let path = format!("/proc/{leader}/task/{leader}/children");
        let text = fs::read_to_string(path).unwrap_or_default();
        let children = text.split_whitespace().flat_map(str::parse).collect();
        Self { leader, children }
    }

    /// Asks the leader alone to stop, which tells its children; any other signal is for everyone. Who has ended cannot
    /// be signalled and need not be.
    fn signal(&self, signal: Signal) {
        if let Some(leader) = pid(self.leader) {
            kill_process_group(leader, signal).ok();
        }
        if [Signal::KILL, Signal::STOP, Signal::CONT].contains(&signal) {
            for child in self.children.iter().copied().filter_map(pid) {
                kill_process(child, signal).ok();
            }
        }
    }

    /// Whether the children have ended too. They hold the data's locks until then.
    fn are_gone(&mut self) -> bool {
        let is_there = |child: &u32| {
            let status = fs::read_to_string(format!("/proc/{child}/stat"));
            // Ended, where nobody collects the children of the dead.
            status.is_ok_and(|status| !status.contains(") Z "))
        };
        self.children.retain(is_there);
        self.children.is_empty()
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Lets what holds an engine be killed, paused and started again like one.
macro_rules! controls_engine {
    ($holder:ty) => {
        impl std::ops::Deref for $holder {
            type Target = $crate::engines::Engine;

            fn deref(&self) -> &Self::Target {
                &self.engine
            }
        }

        impl std::ops::DerefMut for $holder {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.engine
            }
        }
    };
}

pub(super) use controls_engine;
