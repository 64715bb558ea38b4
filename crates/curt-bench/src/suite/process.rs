//! Starting and stopping the servers under test.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_EVERY: Duration = Duration::from_millis(2);

/// A running server. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `program` with `arguments`, bound to `cores` if some are given, with its output in `log`.
    pub(super) fn start(
        program: &Path,
        arguments: &[String],
        cores: &[usize],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let name = program.display().to_string();
        let output =
            File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = match cores {
            [] => Command::new(program),
            // `taskset` becomes the program, so the process id stays the server's.
            _ => {
                let list: Vec<String> = cores.iter().map(ToString::to_string).collect();
                let mut command = Command::new("taskset");
                command.arg("-c").arg(list.join(",")).arg(program);
                command
            }
        };
        let child = command
            .args(arguments)
            .env_remove("CURT_CONFIG")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| match cores {
                [] => format!("cannot start {name}"),
                _ => format!("cannot start taskset (util-linux) with {name}"),
            })?;
        Ok(Self {
            name,
            child,
            log: log.to_path_buf(),
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks `ready` again and again until it gives something; an end of the process is an error with its last words.
    pub(super) fn wait_until<T>(
        &mut self,
        mut ready: impl FnMut() -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(found) = ready() {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "{} ended with {status}:\n{}",
                    self.name,
                    self.read_log_tail()
                );
            }
            if Instant::now() > deadline {
                bail!("{} is not ready:\n{}", self.name, self.read_log_tail());
            }
            thread::sleep(POLL_EVERY);
        }
    }

    fn read_log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Asks the server to end and waits for it; one that does not is killed, and that is an error.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.send_terminate();
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("{} did not stop:\n{}", self.name, self.read_log_tail());
            }
            thread::sleep(POLL_EVERY);
        }
        Ok(())
    }

    /// Asks the server to end, and hands its process id to `read` when it has: the kernel keeps a process's accounts
    /// until its parent has asked for its status.
    pub(super) fn stop_and_then<T>(
        self,
        read: impl FnOnce(u32) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.send_terminate();
        let deadline = Instant::now() + STOP_TIMEOUT;
        while !has_ended(&fs::read_to_string(format!("/proc/{}/stat", self.pid()))?) {
            if Instant::now() > deadline {
                bail!("{} did not stop:\n{}", self.name, self.read_log_tail());
            }
            thread::sleep(POLL_EVERY);
        }
        let found = read(self.pid())?;
        self.stop()?;
        Ok(found)
    }

    fn send_terminate(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself, which is what was wanted.
            let _ended = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // nginx's worker only ends with its master if the master is asked, and not if it is killed.
        self.send_terminate();
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(POLL_EVERY);
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether a line of `/proc/PID/stat` is of a process that has ended and waits for its parent. The name in front may hold
/// anything, parentheses too.
fn has_ended(stat: &str) -> bool {
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// A loopback address that was free a moment ago, for servers that cannot report the port they took.
pub(super) fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// What a program says about its version; some say it on standard error.
pub(super) fn version(program: &Path, flag: &str) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg(flag)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default();
    Ok(line
        .trim_start_matches("nginx version: ")
        .replace('/', " ")
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_can_be_read_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = [
            "-c",
            "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done",
        ];
        let arguments = script.map(ToOwned::to_owned);
        let mut server = Server::start(Path::new("sh"), &arguments, &[], &log).unwrap();
        server
            .wait_until(|| {
                fs::read_to_string(&log)
                    .ok()
                    .filter(|text| text == "ready\n")
            })
            .unwrap();
        let stat = server
            .stop_and_then(|pid| Ok(fs::read_to_string(format!("/proc/{pid}/stat"))?))
            .unwrap();
        assert!(has_ended(&stat), "{stat}");
        assert!(!has_ended("7 (a) Z) S 1"));
    }
}
