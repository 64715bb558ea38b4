//! Which files the settings name, and in which order they are copied.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use curt_keys::Strategy;
use serde::Serialize;

use super::{file_name, refused};
use crate::config::Config;
use crate::wiring::{EngineAddress, EngineKind, Part};

/// Everything on this machine that a backup holds.
pub(super) struct DataFiles {
    /// In the order of copying, see [`DataFiles::of`].
    pub(super) databases: Vec<Database>,
    /// The folder of key files, where keys come from there.
    pub(super) key_files: Option<PathBuf>,
    /// What other programs back up, in words.
    elsewhere: Vec<String>,
}

pub(super) struct Database {
    /// The first setting that names it.
    pub(super) part: Part,
    pub(super) path: PathBuf,
    pub(super) name: String,
}

#[derive(Serialize)]
pub(super) struct CopiedTree {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl DataFiles {
    /// Clicks come first: a click of a link that is not in the copy would be counted for the next link that gets its
    /// key. Then links, then what they refer to: users, keys, positions in key files.
    pub(super) fn of(config: &Config) -> anyhow::Result<Self> {
        let store = &config.store;
        let nodes = store.links_nodes.iter().map(|node| (Part::Links, node));
        let map = store
            .is_sharded()
            .then_some((Part::ShardMap, &store.shard_map));
        let ordered = std::iter::once((Part::Clicks, &store.clicks))
            .chain(nodes)
            .chain(map)
            .chain([(Part::Accounts, &store.accounts)])
            .chain(store.keys.iter().map(|shard| (Part::Keys, shard)))
            .chain(store.cursor.iter().map(|cursor| (Part::Cursor, cursor)));
        let mut files = Self {
            databases: Vec::new(),
            key_files: None,
            elsewhere: Vec::new(),
        };
        for (part, address) in ordered {
            files.add(part, address)?;
        }
        if config.keys.strategy == Strategy::File && store.files.kind() == EngineKind::Files {
            files.key_files = Some(store.files.path().to_owned());
        }
        Ok(files)
    }

    fn add(&mut self, part: Part, address: &EngineAddress) -> anyhow::Result<()> {
        let tool = match address.kind() {
            EngineKind::Sqlite => {
                let path = address.path();
                if self.databases.iter().any(|known| known.path == path) {
                    return Ok(());
                }
                let name = file_name(path);
                if self.databases.iter().any(|known| known.name == name) {
                    return Err(refused(format!(
                        "{}: another database's file is called {name}, too: give one of them another name",
                        part.setting()
                    )));
                }
                self.databases.push(Database {
                    part,
                    path: path.to_owned(),
                    name,
                });
                return Ok(());
            }
            EngineKind::Postgres => "use pg_dump and pg_restore",
            EngineKind::Mysql => "use mariadb-dump (or mysqldump) and mariadb",
            EngineKind::Cassandra => "take a snapshot with nodetool",
            EngineKind::DynamoDb => "use its point-in-time recovery, or backups on demand",
            EngineKind::Memory => "it is in memory and ends with the process",
            _ => "use that engine's own tools",
        };
        let told = format!("{} is at {address}: {tool}", part.setting());
        self.elsewhere.push(told);
        Ok(())
    }

    /// Tells what is kept elsewhere, which is an error if that is everything.
    pub(super) fn require_sqlite(&self, action: &str) -> anyhow::Result<()> {
        if self.databases.is_empty() {
            let elsewhere = self.elsewhere.join("; ");
            return Err(refused(format!("nothing here to {action}: {elsewhere}")));
        }
        for told in &self.elsewhere {
            eprintln!("curt: not included: {told}");
        }
        Ok(())
    }

    /// The name of the folder of key files within a backup.
    pub(super) fn tree_name(&self) -> String {
        self.key_files.as_deref().map(file_name).unwrap_or_default()
    }
}

/// Copies a folder of files that do not change once they have their name.
pub(super) fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<CopiedTree> {
    let mut copied = CopiedTree { files: 0, bytes: 0 };
    copy_into(from, to, &mut copied)
        .with_context(|| format!("could not copy {} to {}", from.display(), to.display()))?;
    Ok(copied)
}

fn copy_into(from: &Path, to: &Path, copied: &mut CopiedTree) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_into(&entry.path(), &target, copied)?;
        } else if kind.is_file() {
            copied.bytes += fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
            copied.files += 1;
        }
    }
    File::open(to)?.sync_all()
}
