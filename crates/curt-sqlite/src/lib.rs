//! SQLite behind five ports: one file for links, minted keys, cursors and accounts, and one for clicks.
//!
//! Each file has its own write-ahead log and its own writer: a flush of clicks may take as long as it takes, and no create
//! and no click of a link with `max_clicks` waits for it (C-2).
//!
//! # Writes
//! A commit costs a sync of the disk whatever it holds. So one thread writes, and all calls that wait for it share its
//! next commit (`engine/writer.rs`). The write-ahead log is checkpointed beside it (`engine/wal.rs`).
//!
//! # Reads
//! A look-up runs on the caller's thread, on whichever of a few connections is idle: it takes less time than waking
//! another thread would. Lists and other long reads of clients run where blocking is allowed, one at a time, on a
//! connection of their own, and end when the client leaves (`engine/scanner.rs`). Those of the process itself have
//! another connection: they never wait for clients.
//!
//! # Layout
//! `links` is an ordinary table whose row id grows, with a unique index over `(domain, key)`. A table clustered by the
//! key would need no index, yet its rows would be written at random places into pages that stay two thirds full; this
//! one appends, and lists newest first by row id. "Newest" is thus the order in which links came into the store, which
//! is that of `created_at` except for imports and clocks that step back.
//!
//! # Figures
//! One run of `cargo bench -p curt-sqlite --bench sqlite -- 4000000`, medians of its three rounds, with
//! `synchronous=FULL`. The machine (two cores, a virtual disk) was busy with other work, at a load of about 7, so only
//! the comparisons say something:
//!
//! | what, with 4M links stored | figure | plain SQLite in the same run |
//! |---|---|---|
//! | insert, one caller, 256 links a call | 29k per second | 23k |
//! | insert, one caller, 1,000 links a call | 27k | 25k |
//! | insert, 64 callers, one link a call | 15.5k | 2.3k, one row a transaction |
//! | look-up on the caller's thread, median / p99 | 10 / 77 µs | |
//! | the same with a hop to another thread | 27 / 168 µs | |
//! | bytes on disk per link beyond its target | 97 | |
//!
//! Mapping the file into memory is off by default: mapped pages show as memory of the process, and a disk error would
//! end it with a signal.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod accounts;
pub mod backup;
mod clicks;
mod cursor;
mod decode;
mod disk;
mod engine;
mod failure;
mod ledger;
mod links;
mod lock_file;
mod schema;
mod settings;
mod shard_maps;
mod tags;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use curt_adapter_kit::{AccountTransfer, ClickTransfer, LockFile, TableClicks, refuse_cursor_form};
use curt_core::ports::{
    AccountItem, Accounts, ClickDatabase, ClickItem, Cursor, KeyLedger, LedgerForm, LinkShards,
    LinkTransfer, SeededDatabase, ShardMaps, StreamId, Transfer,
};
use curt_core::{ErrorKind, PortError, PortResult, ShardMap};

use engine::connection::{open_checkpointer, open_reader, open_writer};
use engine::readers::Readers;
use engine::writer::Writer;
use failure::{BACKEND, port_error};
use rusqlite::Connection;
use schema::{CLICKS, MAIN, Schema};

pub use curt_adapter_kit::Migration;
pub use engine::writer::SqliteStats;
pub use settings::{Access, SqliteSettings, Synchronous};

/// The oldest SQLite whose write-ahead log is known not to damage the file when it starts over under readers.
const VERSION_MIN: i32 = 3_051_003;

/// An open data file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    held: Mutex<OpenFile>,
}

/// What is given up when the file is closed.
#[derive(Debug)]
struct OpenFile {
    thread: Option<JoinHandle<()>>,
    lock: Option<LockFile>,
}

impl Sqlite {
    /// Opens the file of links, accounts, minted keys and cursors; makes it and its folder when they are absent, and
    /// brings its tables up to date.
    pub fn open(path: impl AsRef<Path>, settings: SqliteSettings) -> PortResult<Arc<Self>> {
        Self::open_as(&MAIN, path.as_ref(), &settings)
    }

    /// Does the same for the file of clicks, which serves [`clicks`](Self::clicks) and nothing else.
    pub fn open_clicks(path: impl AsRef<Path>, settings: SqliteSettings) -> PortResult<Arc<Self>> {
        Self::open_as(&CLICKS, path.as_ref(), &settings)
    }

    fn open_as(
        schema: &'static Schema,
        path: &Path,
        settings: &SqliteSettings,
    ) -> PortResult<Arc<Self>> {
        const OP: &str = "open the data file";
        check_version()?;
        make_folder(path)?;
        let mut lock = match settings.access {
            Access::Server => Some(lock_file::acquire(path)?),
            Access::Command => None,
        };
        let failed = |error| port_error(OP, path, &error);
        let connection = open_writer(path, settings, schema).map_err(failed)?;
        if !schema.pending(&connection, path)?.is_empty() {
            // The tables must not change under a running server.
            let guard = match lock.take() {
                Some(lock) => lock,
                None => lock_file::acquire(path)?,
            };
            schema.migrate(&connection, path)?;
            lock = (settings.access == Access::Server).then_some(guard);
        }
        let readers = Readers::open(path, settings).map_err(failed)?;
        let checkpointer = open_checkpointer(path, settings).map_err(failed)?;
        let (writer, thread) = Writer::start(connection, checkpointer, path, settings, schema)?;
        Ok(Arc::new(Self {
            path: path.to_path_buf(),
            writer,
            readers,
            held: Mutex::new(OpenFile {
                thread: Some(thread),
                lock,
            }),
        }))
    }

    /// Brings the tables of a file of links up to date and says what that took. Refused while a server has it open.
    pub fn migrate(path: impl AsRef<Path>) -> PortResult<&'static [Migration]> {
        migrate_as(&MAIN, path.as_ref())
    }

    /// Brings the tables of a file of clicks up to date and says what that took.
    pub fn migrate_clicks(path: impl AsRef<Path>) -> PortResult<&'static [Migration]> {
        migrate_as(&CLICKS, path.as_ref())
    }

    /// What [`migrate`](Self::migrate) would do; everything when the file is absent.
    pub fn pending(path: impl AsRef<Path>) -> PortResult<&'static [Migration]> {
        pending_as(&MAIN, path.as_ref())
    }

    /// What [`migrate_clicks`](Self::migrate_clicks) would do; everything when the file is absent.
    pub fn pending_clicks(path: impl AsRef<Path>) -> PortResult<&'static [Migration]> {
        pending_as(&CLICKS, path.as_ref())
    }

    #[must_use]
    pub fn links(self: &Arc<Self>) -> Arc<dyn SeededDatabase> {
        Arc::new(links::SqliteLinks::new(Arc::clone(self)))
    }

    /// The same links as one node of many.
    #[must_use]
    pub fn shards(self: &Arc<Self>) -> Arc<dyn LinkShards> {
        Arc::new(links::SqliteLinks::new(Arc::clone(self)))
    }

    /// All of them, to be copied to another database or from one; as one node of many, by its map.
    #[must_use]
    pub fn link_transfer(self: &Arc<Self>, map: Arc<ShardMap>) -> Arc<dyn LinkTransfer> {
        Arc::new(links::SqliteLinks::new(Arc::clone(self)).with_map(map))
    }

    /// The map that says which node has which of them.
    #[must_use]
    pub fn shard_maps(self: &Arc<Self>) -> Arc<dyn ShardMaps> {
        Arc::new(shard_maps::SqliteShardMaps::new(Arc::clone(self)))
    }

    /// The ledger in any form but [`LedgerForm::Cursor`].
    pub fn ledger(self: &Arc<Self>, form: LedgerForm) -> PortResult<Arc<dyn KeyLedger>> {
        refuse_cursor_form(BACKEND, form)?;
        Ok(Arc::new(ledger::SqliteLedger::new(Arc::clone(self), form)))
    }

    #[must_use]
    pub fn cursor(self: &Arc<Self>) -> Arc<dyn Cursor> {
        Arc::new(cursor::SqliteCursor::new(Arc::clone(self)))
    }

    #[must_use]
    pub fn accounts(self: &Arc<Self>) -> Arc<dyn Accounts> {
        Arc::new(accounts::SqliteAccounts::new(Arc::clone(self)))
    }

    /// All that is kept of them, to be copied to another database or from one.
    #[must_use]
    pub fn account_transfer(self: &Arc<Self>) -> Arc<dyn Transfer<AccountItem>> {
        let accounts = accounts::SqliteAccounts::new(Arc::clone(self));
        Arc::new(AccountTransfer::new(BACKEND, Arc::new(accounts)))
    }

    /// Of a file that [`open_clicks`](Self::open_clicks) opened.
    #[must_use]
    pub fn clicks(self: &Arc<Self>) -> Arc<dyn ClickDatabase> {
        let tables = clicks::SqliteClicks::new(Arc::clone(self));
        Arc::new(TableClicks::new(tables))
    }

    /// All that is kept of them, to be copied to another database or from one; `copy` tells copies of different
    /// sources apart.
    #[must_use]
    pub fn click_transfer(self: &Arc<Self>, copy: StreamId) -> Arc<dyn Transfer<ClickItem>> {
        let clicks = clicks::SqliteClicks::new(Arc::clone(self));
        Arc::new(ClickTransfer::new(Arc::new(clicks), copy))
    }

    #[must_use]
    pub fn stats(&self) -> SqliteStats {
        self.writer.stats()
    }

    /// Finishes the writes that are queued, checkpoints the log and lets go of it. Called again: no change.
    pub async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
        let (thread, lock) = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            (held.thread.take(), held.lock.take())
        };
        let joined = tokio::task::spawn_blocking(move || {
            let ended = thread.map(JoinHandle::join);
            drop(lock);
            ended
        });
        if !matches!(joined.await, Ok(None | Some(Ok(())))) {
            tracing::error!(backend = BACKEND, "the writer ended with a panic");
        }
    }
}

fn migrate_as(schema: &'static Schema, path: &Path) -> PortResult<&'static [Migration]> {
    check_version()?;
    make_folder(path)?;
    let _lock = lock_file::acquire(path)?;
    let connection = open_writer(path, &SqliteSettings::default(), schema)
        .map_err(|error| port_error("migrate the data file", path, &error))?;
    schema.migrate(&connection, path)
}

fn pending_as(schema: &'static Schema, path: &Path) -> PortResult<&'static [Migration]> {
    const OP: &str = "look at the data file";
    check_version()?;
    let connection = if path.exists() {
        open_reader(path, &SqliteSettings::default())
    } else {
        Connection::open_in_memory()
    };
    schema.pending(
        &connection.map_err(|error| port_error(OP, path, &error))?,
        path,
    )
}

/// The version of SQLite in this build.
#[must_use]
pub fn version() -> &'static str {
    rusqlite::version()
}

fn check_version() -> PortResult<()> {
    let version = rusqlite::version_number();
    if version >= VERSION_MIN {
        return Ok(());
    }
    Err(PortError::new(
        ErrorKind::Invalid,
        BACKEND,
        "start",
        format!(
            "SQLite {} can damage its file: build with 3.51.3 or later",
            crate::version()
        ),
    ))
}

fn make_folder(path: &Path) -> PortResult<()> {
    let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    else {
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        PortError::new(
            ErrorKind::Unavailable,
            BACKEND,
            "make the folder of the data file",
            format!(
                "{} cannot be made: make it by hand, or name another place",
                folder.display()
            ),
        )
        .with_source(error)
    })
}
