//! Copies of a data file, made while it is in use.
//!
//! A copy is one read transaction of SQLite (`VACUUM INTO`): it holds everything that was committed before it began and
//! nothing later, and neither reads nor writes wait for it. The log keeps what is committed meanwhile.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use curt_core::{ErrorKind, PortError, PortResult};
use rusqlite::Connection;

use crate::engine::connection::open_reader;
use crate::failure::{BACKEND, port_error};
use crate::lock_file;
use crate::schema::{CLICKS, MAIN};
use crate::settings::SqliteSettings;

const COPY: &str = "copy the data file";
const CHECK: &str = "check the copy";
/// Steps of SQLite's machine between two reports of progress: some milliseconds.
const STEPS_PER_REPORT: i32 = 100_000;

/// What a data file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFile {
    /// Links, accounts, minted keys and cursors.
    Main,
    Clicks,
}

/// Copies the data file at `from` to `to`, which must not exist, and checks the copy. It is durable and for this user
/// alone; after a failure nothing of it is left. `progress` is told bytes written and, about, how many there will be.
pub fn back_up(
    from: &Path,
    to: &Path,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> PortResult<()> {
    if !from.exists() {
        return Err(refused(COPY, format!("there is no {}", from.display())));
    }
    // SQLite writes into an empty file. Making it here keeps an existing one from being overwritten.
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to);
    let file = made.map_err(|error| {
        refused(COPY, format!("{} cannot be made: {error}", to.display())).with_source(error)
    })?;
    let copied = copy(from, to, progress)
        .map_err(|error| port_error(COPY, to, &error))
        .and_then(|()| check(to))
        .and_then(|()| sync(&file, to));
    if copied.is_err()
        && let Err(error) = fs::remove_file(to)
    {
        tracing::warn!(%error, path = %to.display(), "broken copy not removed");
    }
    copied
}

fn copy(
    from: &Path,
    to: &Path,
    mut progress: impl FnMut(u64, u64) + Send + 'static,
) -> rusqlite::Result<()> {
    let mut connection = open(from)?;
    connection.pragma_update(None, "query_only", false)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = number("page_count")? - number("freelist_count")?;
    let whole = (pages * number("page_size")?).unsigned_abs();
    let target = to.to_path_buf();
    let report = move || {
        let done = fs::metadata(&target).map_or(0, |facts| facts.len());
        progress(done.min(whole), whole);
        false
    };
    connection.progress_handler(STEPS_PER_REPORT, Some(report))?;
    connection.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    Ok(())
}

/// Reads the whole file and says what is wrong with it, if anything is.
pub fn check(path: &Path) -> PortResult<()> {
    let failed = |error| port_error(CHECK, path, &error);
    let connection = open(path).map_err(failed)?;
    let found: String = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(failed)?;
    match found.as_str() {
        "ok" => Ok(()),
        damage => Err(PortError::new(
            ErrorKind::Corrupt,
            BACKEND,
            CHECK,
            format!("{} is damaged: {damage}", path.display()),
        )),
    }
}

/// Returns what the file at `path` holds; one of another program, or of a newer version, is an error that says so.
pub fn identify(path: &Path) -> PortResult<DataFile> {
    let connection = open(path).map_err(|error| port_error(CHECK, path, &error))?;
    match CLICKS.pending(&connection, path) {
        Ok(_) => Ok(DataFile::Clicks),
        Err(_) => MAIN.pending(&connection, path).map(|_| DataFile::Main),
    }
}

/// Refuses a data file that a server has open.
pub fn ensure_unused(path: &Path) -> PortResult<()> {
    match path.exists() {
        true => lock_file::acquire(path).map(drop),
        false => Ok(()),
    }
}

/// How many live links a file of links holds.
pub fn count_links(path: &Path) -> PortResult<u64> {
    let live = open(path).and_then(|connection| crate::links::count_live(&connection));
    live.map_err(|error| port_error(CHECK, path, &error))
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    open_reader(path, &SqliteSettings::default())
}

/// Makes file and folder entry survive a power cut.
fn sync(file: &File, path: &Path) -> PortResult<()> {
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    let synced = file
        .sync_all()
        .and_then(|()| File::open(folder.unwrap_or(Path::new(".")))?.sync_all());
    synced.map_err(|error| {
        let detail = format!("{} cannot be synced: {error}", path.display());
        PortError::new(ErrorKind::Unavailable, BACKEND, COPY, detail).with_source(error)
    })
}

fn refused(op: &'static str, detail: String) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
}
