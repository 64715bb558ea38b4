//! The server under test.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
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
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// A configuration file and a folder of its own.
#[derive(Debug)]
pub(super) struct CurtHome {
    program: PathBuf,
    folder: PathBuf,
    config: PathBuf,
}

impl CurtHome {
    /// Sets curt up in `folder` over the data file `database`.
    pub(super) fn new(program: &Path, folder: &Path, database: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = fs::canonicalize(folder)?;
        let database = fs::canonicalize(database)?;
        let config = folder.join("curt.toml");
        fs::write(&config, configuration(&folder, &database))
            .with_context(|| format!("cannot write {}", config.display()))?;
        Ok(Self {
            program: program.to_path_buf(),
            folder,
            config,
        })
    }

    /// Starts the server with these roles, or all if none are named, and `settings` (`key=value`) over the file's.
    pub(super) fn start(
        &self,
        roles: &[&str],
        settings: &[String],
        core: Option<usize>,
    ) -> anyhow::Result<Curt> {
        let (server, ready) = self.launch(roles, settings, core)?;
        Curt::when_ready(server, &ready)
    }

    /// Starts the server on `addr` and times how long it takes until `path` redirects.
    pub(super) fn start_timed(
        &self,
        addr: SocketAddr,
        path: &str,
    ) -> anyhow::Result<(Curt, Duration)> {
        let began = Instant::now();
        let (mut server, ready) = self.launch(&[], &[format!("server.listen={addr}")], None)?;
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
        core: Option<usize>,
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
        let server = Server::start(&self.program, &arguments, core, &log)?;
        Ok((server, ready))
    }

    /// An API key that works beside or before a running server.
    pub(super) fn api_key(&self) -> anyhow::Result<String> {
        let output = Command::new(&self.program)
            .args(["api-key", "--config"])
            .arg(&self.config)
            .args(["add", "bench"])
            .env_remove("CURT_CONFIG")
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        if !output.status.success() {
            bail!(
                "curt api-key add failed: {}",
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
#[derive(Clone, Copy, Debug)]
pub(super) struct ClickCounters {
    admin: SocketAddr,
}

impl ClickCounters {
    /// How many clicks were not written down, for want of room.
    pub(super) fn dropped(self) -> anyhow::Result<u64> {
        let (_, text) = http_get::get(self.admin, "/metrics")?;
        Ok(http_get::counter(&text, metric::CLICKS_DROPPED))
    }

    /// Waits until every click is counted that was written down.
    pub(super) fn settle(self) -> anyhow::Result<()> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            let (_, text) = http_get::get(self.admin, "/metrics")?;
            let count = |name| http_get::counter(&text, name);
            let captured = count(metric::CLICKS_CAPTURED);
            let counted = count(metric::CLICKS_COUNTED);
            if counted >= captured {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "only {counted} of {captured} clicks are counted"
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

    pub(super) fn clicks(&self) -> ClickCounters {
        ClickCounters { admin: self.admin }
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

    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.server.stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_file_counts_when_both_lines_are_whole() {
        assert_eq!(addresses(""), None);
        assert_eq!(addresses("http=127.0.0.1:80\nadmin=127.0.0.1:8"), None);
        let (http, admin) = addresses("http=127.0.0.1:80\nadmin=127.0.0.1:81\n").unwrap();
        assert_eq!((http.port(), admin.port()), (80, 81));
    }
}
