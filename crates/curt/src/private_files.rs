//! Everything that curt writes is for its own user alone: folders 0700, files 0600. They hold password hashes, the
//! targets of private links, and the addresses of visitors until they are counted.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use curt_core::names::event;
use rustix::fs::Mode;
use tracing::warn;

use crate::config::Config;
use crate::wiring::EngineKind;

/// What anybody but the owner may do with a file.
const OTHERS: u32 = 0o077;
/// Set on folders such as /tmp, which belong to everybody.
const STICKY: u32 = 0o1000;
/// Entries looked at in one start; a folder with more holds other things than curt's.
const ENTRIES_MAX: usize = 100_000;

/// Makes every file and folder that this process creates from now on private, whatever it was started with.
pub(crate) fn restrict_new_files() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Makes what earlier versions wrote private. Refuses nothing: what cannot be changed is logged.
pub(crate) fn tighten(config: &Config) {
    let mut tightening = Tightening {
        spared: spared(config),
        left: ENTRIES_MAX,
        changed: 0,
        failed: 0,
    };
    tightening.tree(&config.data_dir);
    for (_, address) in config.store.addresses() {
        match address.kind() {
            EngineKind::Files | EngineKind::Spool => tightening.tree(address.path()),
            EngineKind::Sqlite => tightening.database(address.path()),
            _ => {}
        }
    }
    if tightening.changed > 0 || tightening.failed > 0 {
        warn!(
            event = event::FILES_TIGHTENED,
            data_dir = %config.data_dir.display(),
            changed = tightening.changed,
            failed = tightening.failed,
            "files were open to other users"
        );
    }
}

/// Files of the operator, which others may keep up to date.
pub(crate) fn spared(config: &Config) -> Vec<PathBuf> {
    let blocklist = config.blocklist.as_ref().map(|list| &list.path);
    let clicks = config.clicks.as_ref();
    let countries = clicks.and_then(|clicks| clicks.countries.as_ref());
    let networks = clicks.and_then(|clicks| clicks.networks.as_ref());
    let rules = config.click_rules.path.as_ref();
    let named = [
        blocklist,
        countries,
        networks,
        rules,
        config.qr_logo.as_ref(),
    ]
    .into_iter()
    .flatten();
    named.filter_map(|path| path.canonicalize().ok()).collect()
}

struct Tightening {
    spared: Vec<PathBuf>,
    left: usize,
    changed: usize,
    failed: usize,
}

impl Tightening {
    /// A folder and all in it. One that belongs to everybody, or to another user, is left alone.
    fn tree(&mut self, folder: &Path) {
        let Ok(facts) = fs::symlink_metadata(folder) else {
            return;
        };
        let is_root = folder
            .canonicalize()
            .is_ok_and(|path| path.parent().is_none());
        if is_root || !facts.is_dir() || facts.mode() & STICKY != 0 || !is_own(&facts) {
            return;
        }
        self.change(folder, &facts);
        for path in entries(folder) {
            self.entry(&path);
        }
    }

    fn entry(&mut self, path: &Path) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        // Nothing is followed that leads elsewhere.
        let Ok(facts) = fs::symlink_metadata(path) else {
            return;
        };
        if facts.is_dir() {
            self.tree(path);
        } else if facts.is_file() && !self.is_spared(path) {
            self.change(path, &facts);
        }
    }

    /// A data file and what stands beside it under its name.
    fn database(&mut self, file: &Path) {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
            return;
        };
        let beside = |path: &PathBuf| {
            let other = path.file_name().unwrap_or_default().as_encoded_bytes();
            other.starts_with(name.as_encoded_bytes())
        };
        for path in entries(folder).into_iter().filter(beside) {
            self.entry(&path);
        }
    }

    fn is_spared(&self, path: &Path) -> bool {
        let path = path.canonicalize();
        path.is_ok_and(|path| self.spared.contains(&path))
    }

    fn change(&mut self, path: &Path, facts: &Metadata) {
        let mode = facts.mode() & 0o7777;
        if mode & OTHERS == 0 {
            return;
        }
        match fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)) {
            Ok(()) => self.changed += 1,
            Err(error) => {
                self.failed += 1;
                warn!(event = event::FILES_TIGHTENED, path = %path.display(), %error, "file stays open to others");
            }
        }
    }
}

fn is_own(facts: &Metadata) -> bool {
    facts.uid() == rustix::process::geteuid().as_raw()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    read.map(|entry| entry.path()).take(ENTRIES_MAX).collect()
}
