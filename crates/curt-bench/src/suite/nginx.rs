//! nginx as the measure: the plain `return 302`, with and without its log, and a real look-up in a map.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use anyhow::Context as _;

use super::process::{Server, free_address};
use super::target_of;
use crate::keys::KeySet;
use crate::load::ServerProcess;

/// What nginx writes down about requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Log {
    Off,
    /// A line for each as it comes, in the usual format.
    On,
    /// The same, 64 KiB at a time.
    Buffered,
}

impl Log {
    fn setting(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "access.log",
            Self::Buffered => "access.log combined buffer=64k",
        }
    }
}

const TEMPLATE: &str = include_str!("nginx.conf.in");

pub(super) struct Nginx {
    server: Server,
    pub(super) addr: SocketAddr,
}

impl Nginx {
    /// Answers every path with the same target.
    pub(super) fn plain(
        program: &Path,
        folder: &Path,
        cores: &[usize],
        log: Log,
    ) -> anyhow::Result<Self> {
        let target = target_of("always");
        Self::start(program, folder, cores, |addr| {
            configuration(addr, log, "", &target)
        })
    }

    /// Looks the path up in a map of `keys`.
    pub(super) fn with_map(
        program: &Path,
        folder: &Path,
        cores: &[usize],
        keys: &KeySet,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("map.conf"), map_entries(keys))?;
        // Twice the entries keeps nginx from warning about long chains, and from building them.
        let map = format!(
            "    map_hash_max_size {};\n    map_hash_bucket_size 256;\n    \
             map $uri $mapped {{\n        default \"\";\n        include map.conf;\n    }}",
            (keys.len() * 2).max(1_024)
        );
        Self::start(program, folder, cores, |addr| {
            configuration(addr, Log::Off, &map, "$mapped")
        })
    }

    fn start(
        program: &Path,
        folder: &Path,
        cores: &[usize],
        config: impl FnOnce(SocketAddr) -> String,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = fs::canonicalize(folder)?;
        let addr = free_address()?;
        fs::write(folder.join("nginx.conf"), config(addr)).context("cannot write nginx.conf")?;
        let arguments = ["-p", "FOLDER", "-c", "nginx.conf", "-e", "error.log"]
            .map(|argument| argument.replace("FOLDER", &folder.display().to_string()));
        // nginx takes `-c` relative to its prefix, and the prefix from `-p`.
        let mut server = Server::start(program, &arguments, cores, &folder.join("nginx.log"))?;
        server.wait_until(|| TcpStream::connect(addr).ok())?;
        Ok(Self { server, addr })
    }

    /// The worker is a child of the process that was started.
    pub(super) fn process(&self) -> ServerProcess {
        ServerProcess {
            pid: self.server.pid(),
            children: true,
        }
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.server.stop()
    }
}

fn configuration(addr: SocketAddr, log: Log, map: &str, target: &str) -> String {
    TEMPLATE
        .replace("@LOG@", log.setting())
        .replace("@ADDR@", &addr.to_string())
        .replace("@MAP@", map)
        .replace("@TARGET@", target)
}

fn map_entries(keys: &KeySet) -> String {
    let mut entries = String::new();
    for place in 0..keys.len() {
        let key = keys.text(place);
        // Writing into a string cannot fail.
        let _written = writeln!(entries, "/{key} {};", target_of(&key));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_open_in_the_configuration() {
        for log in [Log::Off, Log::On, Log::Buffered] {
            let text = configuration(([127, 0, 0, 1], 81).into(), log, "", "https://a/");
            assert!(text.contains("listen 127.0.0.1:81;"));
            assert!(text.contains("return 302 https://a/;"));
            assert!(!text.contains('@'));
        }
    }

    #[test]
    fn the_map_leads_every_key_to_its_target() {
        let keys: KeySet = ["aB", "c"].into_iter().collect();
        let entries = map_entries(&keys);
        let first = format!("/aB {};\n", target_of("aB"));
        assert!(entries.starts_with(&first), "{entries}");
        assert_eq!(entries.lines().count(), 2);
    }
}
