use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::{Guarded, wait, wait_for_file};

/// A running server. Killed when dropped, and when the tests are.
#[derive(Debug)]
pub struct Server {
    child: Guarded,
    http: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    agent: Option<SocketAddr>,
    logs: [PathBuf; 2],
}

impl Server {
    /// Waits until the server has written its addresses.
    pub(super) fn wait_until_ready(
        child: Guarded,
        logs: [PathBuf; 2],
        ready_file: &Path,
        time: Duration,
    ) -> Result<Self> {
        let mut server = Self {
            child,
            http: None,
            admin: None,
            agent: None,
            logs,
        };
        let text = wait_for_file(ready_file, &mut server.child, time)
            .with_context(|| format!("its output was:\n{}", server.logs()))?;
        for line in text.lines() {
            let (name, address) = line.split_once('=').context("a line without '='")?;
            let address = address.parse().context("a line without an address")?;
            match name {
                "http" => server.http = Some(address),
                "admin" => server.admin = Some(address),
                "agent" => server.agent = Some(address),
                other => bail!("the server announced {other:?}"),
            }
        }
        Ok(server)
    }

    /// Where links redirect and the API answers.
    pub fn http(&self) -> Result<SocketAddr> {
        self.http.context("the server does not serve links")
    }

    /// Where health and metrics answer.
    pub fn admin(&self) -> Result<SocketAddr> {
        self.admin.context("the server has no admin port")
    }

    /// Where balancers are told of its load.
    pub fn agent(&self) -> Result<SocketAddr> {
        self.agent.context("the server has no agent port")
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Memory that the process holds now, in bytes, by the system's account.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The part of it that is not backed by files, such as mapped segments of the spool.
    pub fn anonymous_bytes(&self) -> Result<u64> {
        self.status_bytes("RssAnon:")
    }

    fn status_bytes(&self, name: &str) -> Result<u64> {
        let value = self.status(name)?;
        let kibibytes = value.trim_end_matches("kB").trim();
        Ok(kibibytes.parse::<u64>()? * 1_024)
    }

    /// Threads that the process has now.
    pub fn threads(&self) -> Result<u64> {
        Ok(self.status("Threads:")?.parse()?)
    }

    /// One line of what the system says about the process.
    fn status(&self, name: &str) -> Result<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.context("the system does not say")?.trim().to_owned())
    }

    /// Everything that the server has written to its outputs so far.
    #[must_use]
    pub fn logs(&self) -> String {
        let read = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        self.logs.iter().map(read).collect()
    }

    /// Whether the process is still there.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Ends the process at once and without notice, as `kill -9` does, and returns when it is gone. Fails, with its output,
    /// when it had ended by itself.
    pub fn kill(mut self) -> Result<()> {
        let killed = self.child.kill();
        killed.with_context(|| format!("its output was:\n{}", self.logs()))
    }

    /// Sends a signal and goes on.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.raw_pid()?, signal)?)
    }

    /// Asks the process to stop, as `kill` does, and waits for it. Not gone within `time`: an error with its output,
    /// and it is killed.
    pub fn terminate(mut self, time: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let status = wait(&mut self.child, time)?;
        status.with_context(|| {
            let logs = self.logs();
            format!("the server did not stop within {time:?}; its output was:\n{logs}")
        })
    }

    fn raw_pid(&self) -> Result<Pid> {
        let pid = i32::try_from(self.pid())?;
        Pid::from_raw(pid).context("a process without an id")
    }
}
