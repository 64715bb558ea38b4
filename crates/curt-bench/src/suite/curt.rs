//! The server under test.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use curt_core::names::metric;

use super::http_get;
use super::process::Server;
use crate::cpu;
use crate::load::ServerProcess;

/// How long counting the clicks of a run may take, and how often it is asked about: seldom, since answering costs too.
const SETTLES_WITHIN: Duration = Duration::from_secs(120);
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// A configuration file and a folder of its own.
#[derive(Debug)]
pub(super) struct CurtHome {
    program: PathBuf,
    folder: PathBuf,
    config: PathBuf,
    made_key: OnceLock<String>,
    /// The clicks database, which the server makes beside the links database.
    pub(super) clicks_file: PathBuf,
}

impl CurtHome {
    /// Sets curt up in `folder` over the data file `database`.
    pub(super) fn new(program: &Path, folder: &Path, database: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = fs::canonicalize(folder)?;
        // It need not be there yet: the server makes one.
        let database = std::path::absolute(database)?;
        let config = folder.join("curt.toml");
        fs::write(&config, configuration(&folder, &database))
            .with_context(|| format!("cannot write {}", config.display()))?;
        Ok(Self {
            program: program.to_path_buf(),
            folder,
            config,
            made_key: OnceLock::new(),
            clicks_file: database.with_file_name("clicks.db"),
        })
    }

    /// Starts the server with these roles, or all if none are named, and `settings` (`key=value`) over the file's.
    pub(super) fn start(
        &self,
        roles: &[&str],
        settings: &[String],
        cores: &[usize],
    ) -> anyhow::Result<Curt> {
        let (server, ready) = self.launch(roles, settings, cores)?;
        Curt::when_ready(server, &ready)
    }

    /// Starts the server on `addr` and times how long it takes until `path` redirects.
    pub(super) fn start_timed(
        &self,
        addr: SocketAddr,
        path: &str,
    ) -> anyhow::Result<(Curt, Duration)> {
        let began = Instant::now();
        let (mut server, ready) = self.launch(&[], &[format!("server.listen={addr}")], &[])?;
        server.wait_until(|| {
            http_get::get(addr, path)
                .ok()
                .filter(|(status, _)| *status == 302)
        })?;
        let taken = began.elapsed();
        Ok((Curt::when_ready(server, &ready)?, taken))
    }

    fn launch(
        &self,
        roles: &[&str],
        settings: &[String],
        cores: &[usize],
    ) -> anyhow::Result<(Server, PathBuf)> {
        let ready = self.folder.join("ready");
        if ready.exists() {
            fs::remove_file(&ready)?;
        }
        let mut arguments = vec![
            "serve".to_owned(),
            "--config".to_owned(),
            self.config.display().to_string(),
            "--ready-file".to_owned(),
            ready.display().to_string(),
        ];
        arguments.extend(roles.iter().map(|role| (*role).to_owned()));
        for setting in settings {
            arguments.extend(["--set".to_owned(), setting.clone()]);
        }
        let log = self.folder.join("curt.log");
        let server = Server::start(&self.program, &arguments, cores, &log)?;
        Ok((server, ready))
    }

    /// The API key of this home, made with the first call, that works beside or before a running server.
    pub(super) fn api_key(&self) -> anyhow::Result<String> {
        if let Some(made) = self.made_key.get() {
            return Ok(made.clone());
        }
        self.run(&["migrate", "--new"])?;
        let made = self.run(&["api-key", "add", "bench"])?;
        Ok(self.made_key.get_or_init(|| made).clone())
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .arg("--config")
            .arg(&self.config)
            .env_remove("CURT_CONFIG")
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        if !output.status.success() {
            bail!(
                "curt {} failed: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

fn configuration(folder: &Path, database: &Path) -> String {
    format!(
        "data_dir = \"{}\"\n\
         [server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         [store]\nlinks = \"sqlite:{}\"\n\
         [log]\nlevel = \"warn\"\n",
        folder.display(),
        database.display()
    )
}

/// The two lines of the ready file, once both are whole.
fn addresses(text: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line = |name: &str| {
        let start = text.find(name)? + name.len();
        let (address, _) = text[start..].split_once('\n')?;
        address.parse().ok()
    };
    Some((line("http=")?, line("admin=")?))
}

/// A running server.
#[derive(Debug)]
pub(super) struct Curt {
    server: Server,
    pub(super) http: SocketAddr,
    admin: SocketAddr,
}

/// What the cache holds, by the server's own account.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheGauges {
    pub(super) links: f64,
    pub(super) bytes: f64,
}

/// Where a server tells what became of clicks.
#[derive(Clone, Debug)]
pub(super) struct ClickCounters {
    admin: SocketAddr,
    http: SocketAddr,
    /// For reports.
    api_key: String,
}

/// Clicks since the server started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClickReading {
    /// Written to the spool.
    pub(super) captured: u64,
    /// Counted in the store.
    pub(super) counted: u64,
    /// Not written down, for want of room.
    pub(super) dropped: u64,
    /// What the spool's files take.
    pub(super) spool_bytes: f64,
    /// Age of the oldest click that is not even read from the spool, in seconds.
    pub(super) lag_seconds: f64,
}

impl ClickReading {
    fn parse(metrics: &str) -> Self {
        let count = |name| http_get::counter(metrics, name);
        Self {
            captured: count(metric::CLICKS_CAPTURED),
            counted: count(metric::CLICKS_COUNTED),
            dropped: count(metric::CLICKS_DROPPED),
            spool_bytes: http_get::metric(metrics, metric::SPOOL_BYTES).unwrap_or_default(),
            lag_seconds: http_get::metric(metrics, metric::CLICKS_LAG).unwrap_or_default(),
        }
    }

    /// Clicks that are in the spool and not in the database.
    pub(super) fn uncounted(&self) -> u64 {
        self.captured.saturating_sub(self.counted)
    }
}

impl ClickCounters {
    pub(super) fn read(&self) -> anyhow::Result<ClickReading> {
        let (status, text) = http_get::get(self.admin, "/metrics")?;
        ensure!(status == 200, "/metrics answered {status}");
        Ok(ClickReading::parse(&text))
    }

    /// Asks for a report, before which the server writes what it has aggregated.
    pub(super) fn ask_for_report(&self) -> anyhow::Result<()> {
        let (status, text) = http_get::get_with_key(self.http, "/api/v1/stats", &self.api_key)?;
        ensure!(status == 200, "/api/v1/stats answered {status}: {text}");
        Ok(())
    }

    /// Waits until `answered` clicks since `before` are counted, or known to be dropped. The answers are counted by the
    /// generator: the server's own count of what it captured may come later than the answer.
    ///
    /// Windows of clicks last minutes (`clicks.flush_every`), and a report ends them, so one is asked for when everything
    /// has been read from the spool.
    pub(super) fn wait_until_counted(
        &self,
        before: ClickReading,
        answered: u64,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            if self.read()?.lag_seconds == 0.0 {
                self.ask_for_report()?;
            }
            let now = self.read()?;
            let (counted, dropped) = (now.counted - before.counted, now.dropped - before.dropped);
            if counted + dropped >= answered {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "only {counted} of {answered} clicks are counted, and {dropped} were dropped"
            );
            thread::sleep(LOOKS_EVERY);
        }
    }
}

impl Curt {
    fn when_ready(mut server: Server, ready: &Path) -> anyhow::Result<Self> {
        let (http, admin) =
            server.wait_until(|| addresses(&fs::read_to_string(ready).unwrap_or_default()))?;
        Ok(Self {
            server,
            http,
            admin,
        })
    }

    pub(super) fn process(&self) -> ServerProcess {
        ServerProcess {
            pid: self.server.pid(),
            children: false,
        }
    }

    pub(super) fn clicks(&self, home: &CurtHome) -> anyhow::Result<ClickCounters> {
        Ok(ClickCounters {
            admin: self.admin,
            http: self.http,
            api_key: home.api_key()?,
        })
    }

    /// Clicks that found no room in the spool.
    pub(super) fn clicks_dropped(&self) -> anyhow::Result<u64> {
        let (_, text) = http_get::get(self.admin, "/metrics")?;
        Ok(ClickReading::parse(&text).dropped)
    }

    pub(super) fn cache(&self) -> anyhow::Result<CacheGauges> {
        let (status, text) = http_get::get(self.admin, "/metrics")?;
        let gauge = |name| {
            http_get::metric(&text, name)
                .with_context(|| format!("/metrics answered {status} without {name}"))
        };
        Ok(CacheGauges {
            links: gauge(metric::CACHE_LINKS)?,
            bytes: gauge(metric::CACHE_BYTES)?,
        })
    }

    pub(super) fn resident_bytes(&self) -> anyhow::Result<f64> {
        Ok(cpu::resident_bytes(self.server.pid())? as f64)
    }

    /// Whether answers go to the kernel by an io_uring, which some systems do not have or forbid.
    pub(super) fn uses_io_uring(&self) -> anyhow::Result<bool> {
        let folder = format!("/proc/{}/fd", self.server.pid());
        let files = fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))?;
        Ok(files
            .flatten()
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|target| target.to_string_lossy().contains("[io_uring]")))
    }

    /// Bytes that the process has sent to disks so far.
    pub(super) fn written_bytes(&self) -> anyhow::Result<u64> {
        Ok(cpu::written_bytes(self.server.pid())?)
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.server.stop()
    }

    /// Stops the server, which ends with a checkpoint, and returns what it had written to disks by then.
    pub(super) fn stop_and_read_written_bytes(self) -> anyhow::Result<u64> {
        self.server
            .stop_and_then(|pid| Ok(cpu::written_bytes(pid)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clicks_are_read_from_the_metrics() {
        let metrics = "# TYPE curt_clicks_captured counter\ncurt_clicks_captured_total 70\n\
             curt_clicks_counted_total{class=\"human\"} 40\ncurt_clicks_counted_total{class=\"bot\"} 10\n\
             curt_clicks_dropped_total{reason=\"full\"} 3\ncurt_clicks_dropped_total{reason=\"late\"} 4\n\
             curt_spool_bytes 8388608\ncurt_clicks_lag_seconds 3\n";
        let reading = ClickReading::parse(metrics);
        assert_eq!((reading.captured, reading.counted), (70, 50));
        assert_eq!((reading.dropped, reading.uncounted()), (7, 20));
        assert_eq!(
            (reading.spool_bytes, reading.lag_seconds),
            (8_388_608.0, 3.0)
        );
        assert_eq!(ClickReading::parse("").uncounted(), 0);
    }

    #[test]
    fn a_ready_file_counts_when_both_lines_are_whole() {
        assert_eq!(addresses(""), None);
        assert_eq!(addresses("http=127.0.0.1:80\nadmin=127.0.0.1:8"), None);
        let (http, admin) = addresses("http=127.0.0.1:80\nadmin=127.0.0.1:81\n").unwrap();
        assert_eq!((http.port(), admin.port()), (80, 81));
    }
}
