//! The real binary in a folder of its own: started on any free port, killed in every way, started again on the same
//! data.
//!
//! ```text
//! # fn main() -> anyhow::Result<()> {
//! let app = curt_testkit::process::App::new("target/debug/curt")?.setting("server.workers", 2);
//! let server = app.start()?;
//! let address = server.http()?;
//! server.kill()?; // as kill -9 does
//! let again = app.start()?; // on the same data
//! again.terminate(std::time::Duration::from_secs(10))?;
//! # Ok(())
//! # }
//! ```

mod guarded;
mod server;

pub use guarded::Guarded;
pub use server::Server;

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::watchdog::Watchdog;

/// How long a server may take from its start to being ready, unless a test says otherwise.
const READY_TIME_DEFAULT: Duration = Duration::from_secs(30);
/// How long any other command may run.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(120);
/// How often a process or a file is looked at while waiting for it.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// An installation of the binary: a folder with its data, and its settings. The folder goes when this is dropped.
#[derive(Debug)]
pub struct App {
    binary: PathBuf,
    before: Vec<OsString>,
    folder: TempDir,
    watchdog: Arc<Watchdog>,
    settings: Vec<(String, String)>,
    environment: Vec<(OsString, OsString)>,
    ready_time: Duration,
    starts: AtomicU32,
}

impl App {
    /// An installation in a new temporary folder. `binary` is often `env!("CARGO_BIN_EXE_curt")`.
    pub fn new(binary: impl AsRef<Path>) -> Result<Self> {
        let binary = binary.as_ref();
        let binary = binary
            .canonicalize()
            .with_context(|| format!("there is no binary {}", binary.display()))?;
        let folder = tempfile::Builder::new().prefix("curt-").tempdir()?;
        let watchdog = Arc::new(Watchdog::of(folder.path())?);
        Ok(Self {
            binary,
            before: Vec::new(),
            folder,
            watchdog,
            settings: Vec::new(),
            environment: Vec::new(),
            ready_time: READY_TIME_DEFAULT,
            starts: AtomicU32::new(0),
        })
    }

    /// Adds a setting, for the server as `--set key=value` and for other commands in the environment: those take
    /// options in various places.
    #[must_use]
    pub fn setting(mut self, key: &str, value: impl Display) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.environment.push(pair);
        self
    }

    /// Starts the binary by another command, such as `taskset -c 0`, that must put it in its own place.
    #[must_use]
    pub fn behind<S: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        let words = command.into_iter().map(|word| word.as_ref().to_owned());
        self.before = words.collect();
        self
    }

    /// Allows more or less time until the server is ready.
    #[must_use]
    pub fn ready_within(mut self, time: Duration) -> Self {
        self.ready_time = time;
        self
    }

    /// The folder that commands run in; data is in `data` below it unless a setting says otherwise.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts `serve` with every role on free ports, and returns when it is ready.
    pub fn start(&self) -> Result<Server> {
        self.start_with::<&str>(&[])
    }

    /// Starts `serve` with more arguments: roles, or further settings.
    pub fn start_with<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Server> {
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        let path = |name: &str| self.folder().join(format!("server-{number}.{name}"));
        let ready_file = path("ready");
        let mut command = self.command();
        command
            .arg("serve")
            .args(["--set", "server.listen=127.0.0.1:0"])
            .args(["--set", "server.admin_listen=127.0.0.1:0"])
            .args(self.settings.iter().flat_map(set_option))
            .arg("--ready-file")
            .arg(&ready_file)
            .args(arguments);
        let logs = [path("stdout"), path("stderr")];
        let child = self.spawn(&mut command, &logs)?;
        Server::wait_until_ready(child, logs, &ready_file, self.ready_time)
    }

    /// Runs a command of the binary in the same folder with the same settings, such as `["api-key", "add", "tests"]`, and
    /// returns what it printed when it succeeded.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments)?;
        ensure!(
            output.status.success(),
            "{arguments:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a command like [`run`](Self::run), and returns its status and output whatever they are.
    pub fn output(&self, arguments: &[&str]) -> Result<Output> {
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        let path = |name: &str| self.folder().join(format!("command-{number}.{name}"));
        let logs = [path("stdout"), path("stderr")];
        let mut command = self.command();
        command
            .args(arguments)
            .envs(self.settings.iter().map(variable));
        let mut child = self.spawn(&mut command, &logs)?;
        let status = wait(&mut child, COMMAND_TIME_MAX)?;
        let status = status.with_context(|| format!("{arguments:?} did not end in time"))?;
        Ok(Output {
            status,
            stdout: fs::read(&logs[0])?,
            stderr: fs::read(&logs[1])?,
        })
    }

    /// The binary in its folder, shielded from settings in the environment of the tests, for commands that are talked
    /// to while they run. [`setting`](Self::setting)s are for the caller to add.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut words = self.before.iter();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CURT_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.folder())
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the command with its output in files: nobody has to read them for it to go on.
    fn spawn(&self, command: &mut Command, [stdout, stderr]: &[PathBuf; 2]) -> Result<Guarded> {
        command
            .stdin(Stdio::null())
            .stdout(File::create(stdout)?)
            .stderr(File::create(stderr)?);
        Guarded::spawn_with(command, Arc::clone(&self.watchdog))
    }
}

fn set_option((key, value): &(String, String)) -> [String; 2] {
    ["--set".to_owned(), format!("{key}={value}")]
}

/// `CURT_SERVER_LISTEN` for `server.listen`.
fn variable((key, value): &(String, String)) -> (String, &str) {
    let name = key.to_uppercase().replace('.', "_");
    (format!("CURT_{name}"), value)
}

/// Waits for the end of the process; `None` when it takes longer than `time`.
fn wait(child: &mut Child, time: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The content of a file once it is there; fails when the process ends first or the time is over.
fn wait_for_file(path: &Path, child: &mut Child, time: Duration) -> Result<String> {
    let end = Instant::now() + time;
    loop {
        match fs::read_to_string(path) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(status) = child.try_wait()? {
            bail!("the server ended with {status} before it was ready");
        }
        ensure!(Instant::now() < end, "the server was not ready in {time:?}");
        std::thread::sleep(LOOK_EVERY);
    }
}
