use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::engines::Missing;
use crate::engines::account::Account;
use crate::engines::command::output;

const POSTGRES: Missing = Missing {
    engine: "PostgreSQL",
    install: "apt-get install postgresql",
};
/// Where Debian keeps the versions, one folder each.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Refuses to run as root.
const ACCOUNT: Account = Account("postgres");

/// The programs of the newest PostgreSQL on this machine.
#[derive(Clone, Debug)]
pub(super) struct Programs(PathBuf);

impl Programs {
    pub(super) fn find() -> Result<Self> {
        let newest = || {
            let folders = fs::read_dir(VERSIONS).ok()?.flatten();
            let versions = folders.map(|folder| folder.path().join("bin"));
            let servers = versions.filter(|programs| programs.join("postgres").is_file());
            servers.max_by_key(|programs| version_of(programs))
        };
        match newest() {
            Some(programs) => Ok(Self(programs)),
            None => Ok(Self(folder_of(&POSTGRES.program("postgres")?)?)),
        }
    }

    /// A program as the account that must own the data.
    pub(super) fn as_owner(&self, program: &str) -> Command {
        ACCOUNT.command(self.0.join(program))
    }

    /// A client. What the environment says about servers is meant for others.
    pub(super) fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.0.join(program));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("PGCONNECT_TIMEOUT", "5");
        command
    }

    /// Makes an empty database cluster in `data`, which nothing guards against a loss of power.
    pub(super) fn make_cluster(&self, data: &Path) -> Result<()> {
        let mut command = self.as_owner("initdb");
        command
            .arg("-D")
            .arg(data)
            .args(["-U", "postgres", "-A", "trust", "--no-sync"])
            .args(["-E", "UTF8", "--locale=C.UTF-8"]);
        output(&mut command).map(drop)
    }

    /// Copies a running server into `data`, ready to follow it.
    pub(super) fn copy_cluster(&self, port: u16, data: &Path) -> Result<()> {
        let mut command = self.as_owner("pg_basebackup");
        command
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres"])
            .args(["-R", "-X", "stream", "--no-sync", "-c", "fast", "-D"])
            .arg(data);
        output(&mut command).map(drop)
    }

    pub(super) fn give(&self, folder: &Path) -> Result<()> {
        ACCOUNT.own(folder)
    }
}

fn version_of(programs: &Path) -> Option<u32> {
    let version = programs.parent()?.file_name()?.to_str()?;
    version.parse().ok()
}

fn folder_of(program: &Path) -> Result<PathBuf> {
    let folder = program.parent().context("a program without a folder")?;
    Ok(folder.to_owned())
}
