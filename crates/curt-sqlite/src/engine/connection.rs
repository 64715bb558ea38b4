use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::schema::Schema;
use crate::settings::{SqliteSettings, Synchronous};

/// More than the distinct statements of this adapter, so that none is prepared twice.
const STATEMENTS_KEPT: usize = 96;

/// The connection that writes; makes the file when it is absent.
pub(crate) fn open_writer(
    path: &Path,
    settings: &SqliteSettings,
    schema: &Schema,
) -> rusqlite::Result<Connection> {
    let connection = open(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        settings,
        settings.writer_cache_bytes,
    )?;
    if schema.shrinks {
        // Counts only before the first table; later it is what the file has.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    set_synchronous(&connection, settings)?;
    // Otherwise a commit would checkpoint the log before it returns.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    if let Some(pages) = settings.pages_max {
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(connection)
}

/// A connection that only checkpoints the log.
pub(crate) fn open_checkpointer(
    path: &Path,
    settings: &SqliteSettings,
) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, settings, 0)?;
    set_synchronous(&connection, settings)?;
    Ok(connection)
}

fn set_synchronous(connection: &Connection, settings: &SqliteSettings) -> rusqlite::Result<()> {
    let synchronous = match settings.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)
}

/// A connection that only reads. Not opened read-only: such a connection could not make the index of the log anew.
pub(crate) fn open_reader(path: &Path, settings: &SqliteSettings) -> rusqlite::Result<Connection> {
    let connection = open(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE,
        settings,
        settings.reader_cache_bytes,
    )?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open(
    path: &Path,
    flags: OpenFlags,
    settings: &SqliteSettings,
    cache_bytes: usize,
) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.busy_timeout(settings.busy_timeout)?;
    // A negative cache size is in KiB.
    let cache_kib = i64::try_from(cache_bytes / 1_024).unwrap_or(i64::MAX);
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    let mapped = i64::try_from(settings.mmap_bytes).unwrap_or(i64::MAX);
    connection.pragma_update_and_check(None, "mmap_size", mapped, |_| Ok(()))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}
