//! Moves the clicks of a links database, where earlier versions kept them, into a file of their own.
//!
//! Two write-ahead logs cannot commit together, so the order is what makes a crash harmless: the clicks are copied, the
//! copy is marked as finished, and only then does a step of the schema drop the originals. An interrupted copy goes on
//! where it ended, and a finished one is not made again. Nothing counts clicks meanwhile: both files are locked.

use std::fs::File;
use std::path::Path;

use curt_core::{ErrorKind, PortError, PortResult, names};
use rusqlite::{Connection, OptionalExtension};

use super::clicks::VISIT_BYTES;
use super::disk;
use super::engine::connection::open_writer;
use super::failure::{BACKEND, port_error};
use super::lock_file;
use super::schema::CLICKS;
use super::settings::SqliteSettings;

const OP: &str = "move the clicks to a file of their own";
/// Rows of one transaction: bounds what the log of the new file takes.
const BATCH_ROWS: usize = 10_000;
/// What must be left on the disk after the copy.
const ROOM_LEFT: u64 = 16 << 20;

/// Each table with its columns; those with an id come in its order, and the copy goes on behind the last one.
const TABLES: [(&str, &str, bool); 5] = [
    ("click_positions", "stream, partition, position", false),
    ("click_salts", "day, salt", false),
    ("click_subjects", "id, kind, number, name", true),
    ("click_days", "id, counts, visitors", true),
    (
        "click_visits",
        "id, subject, owner, asked, tags, kind, country, browser, system, device, referrer, language, address",
        true,
    ),
];

/// Copies every click from the links database at `from` to the clicks database at `to`. No change when there are none,
/// or when they have been copied before.
pub(super) fn copy_clicks(
    connection: &Connection,
    from: &Path,
    to: Option<&Path>,
    settings: &SqliteSettings,
) -> PortResult<()> {
    let failed = |error| port_error(OP, from, &error);
    if !holds_clicks(connection, "main").map_err(failed)? {
        return Ok(());
    }
    let Some(to) = to else {
        return Err(invalid(format!(
            "{} holds clicks of an earlier version: run \"curt migrate\" once with this file as store.links and \
             store.clicks = \"\"",
            from.display()
        )));
    };
    check_room(connection, from, to)?;
    let _lock = lock_file::acquire(to)?;
    prepare(to, settings)?;
    tracing::info!(
        event = names::event::CLICKS_MOVED,
        from = %from.display(),
        to = %to.display(),
        "moving clicks to their own file"
    );
    let attached = attach(connection, to).map_err(failed)?;
    let copied = copy_all(connection, from, to);
    attached.detach();
    copied?;
    // The new file's name must be durable before the originals go.
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    synced.map_err(|error| {
        let detail = format!("the folder of {} cannot be synced", to.display());
        PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail).with_source(error)
    })
}

/// Makes the tables of the new file.
fn prepare(to: &Path, settings: &SqliteSettings) -> PortResult<()> {
    let connection =
        open_writer(to, settings, &CLICKS).map_err(|error| port_error(OP, to, &error))?;
    CLICKS.migrate(&connection, to, || Ok(())).map(drop)
}

/// The copy needs as much room as the originals, which go only afterwards.
fn check_room(connection: &Connection, from: &Path, to: &Path) -> PortResult<()> {
    let bytes: i64 = connection
        .query_row(
            "SELECT coalesce(sum(pgsize), 0) FROM dbstat('main', 1) WHERE name LIKE 'click\\_%' ESCAPE '\\'",
            (),
            |row| row.get(0),
        )
        .map_err(|error| port_error(OP, from, &error))?;
    let wanted = bytes.cast_unsigned().saturating_add(ROOM_LEFT);
    match disk::free_bytes(to) {
        Some(free) if free < wanted => Err(PortError::new(
            ErrorKind::Unavailable,
            BACKEND,
            OP,
            format!(
                "the clicks of {} need {wanted} bytes beside {}, and {free} are free: free space, or name a file on \
                 another disk as store.clicks",
                from.display(),
                to.display()
            ),
        )),
        _ => Ok(()),
    }
}

fn holds_clicks(connection: &Connection, schema: &str) -> rusqlite::Result<bool> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {schema}.click_positions) OR EXISTS (SELECT 1 FROM {schema}.click_days) \
         OR EXISTS (SELECT 1 FROM {schema}.click_visits)"
    );
    connection.query_row(&sql, (), |row| row.get(0))
}

/// The new file beside the old one in the same connection.
struct Attached<'a>(&'a Connection);

fn attach<'a>(connection: &'a Connection, to: &Path) -> rusqlite::Result<Attached<'a>> {
    connection.execute("ATTACH DATABASE ?1 AS moved", [to.to_string_lossy()])?;
    let attached = Attached(connection);
    // Whatever the settings say: the originals are dropped in the belief that the copy outlives a power cut.
    connection
        .execute_batch("PRAGMA moved.synchronous = FULL; PRAGMA wal_autocheckpoint = 1000")?;
    Ok(attached)
}

impl Attached<'_> {
    fn detach(self) {
        self.0.flush_prepared_statement_cache();
        let sql = "PRAGMA wal_autocheckpoint = 0; DETACH DATABASE moved";
        if let Err(error) = self.0.execute_batch(sql) {
            tracing::debug!(%error, "the file of clicks stays attached");
        }
    }
}

fn copy_all(connection: &Connection, from: &Path, to: &Path) -> PortResult<()> {
    let failed = |error| port_error(OP, to, &error);
    let finished: Option<bool> = connection
        .query_row("SELECT finished FROM moved.click_move", (), |row| {
            row.get(0)
        })
        .optional()
        .map_err(failed)?;
    match finished {
        // A crash came before the originals were dropped; or a backup of the links database was restored.
        Some(true) => return Ok(()),
        // An earlier version may have counted since: days may differ from their copies. Single clicks never change.
        Some(false) => clear_counts(connection).map_err(failed)?,
        None if holds_clicks(connection, "moved").map_err(failed)? => {
            return Err(invalid(format!(
                "both {} and {} hold clicks: move the one away whose counts are not wanted",
                from.display(),
                to.display()
            )));
        }
        None => {
            connection
                .execute(
                    "INSERT INTO moved.click_move (id, finished) VALUES (1, 0)",
                    (),
                )
                .map_err(failed)?;
        }
    }
    for (table, columns, has_id) in TABLES {
        copy_table(connection, table, columns, has_id).map_err(failed)?;
        if rows(connection, "main", table)? != rows(connection, "moved", table)? {
            let sql = format!("DELETE FROM moved.{table}");
            connection.execute(&sql, ()).map_err(failed)?;
            copy_table(connection, table, columns, has_id).map_err(failed)?;
            check_copy(connection, table, from)?;
        }
    }
    let size = format!(
        "UPDATE moved.click_visits_size SET bytes = (SELECT coalesce(sum({VISIT_BYTES}), 0) FROM moved.click_visits)"
    );
    connection.execute(&size, ()).map_err(failed)?;
    connection
        .execute("UPDATE moved.click_move SET finished = 1", ())
        .map(drop)
        .map_err(failed)
}

fn copy_table(
    connection: &Connection,
    table: &str,
    columns: &str,
    has_id: bool,
) -> rusqlite::Result<()> {
    if !has_id {
        let sql = format!(
            "INSERT OR IGNORE INTO moved.{table} ({columns}) SELECT {columns} FROM main.{table}"
        );
        return connection.execute(&sql, ()).map(drop);
    }
    let last = format!("SELECT coalesce(max(id), -1) FROM moved.{table}");
    let copy = format!(
        "INSERT INTO moved.{table} ({columns}) SELECT {columns} FROM main.{table} \
         WHERE id > ?1 ORDER BY id LIMIT {BATCH_ROWS}"
    );
    loop {
        let last: i64 = connection.query_row(&last, (), |row| row.get(0))?;
        if connection.prepare_cached(&copy)?.execute([last])? < BATCH_ROWS {
            return Ok(());
        }
    }
}

fn clear_counts(connection: &Connection) -> rusqlite::Result<()> {
    let kept = "click_visits";
    for (table, ..) in TABLES.iter().filter(|(table, ..)| *table != kept) {
        connection.execute(&format!("DELETE FROM moved.{table}"), ())?;
    }
    Ok(())
}

fn rows(connection: &Connection, schema: &str, table: &str) -> PortResult<i64> {
    let sql = format!("SELECT count(*) FROM {schema}.{table}");
    let counted = connection.query_row(&sql, (), |row| row.get(0));
    counted.map_err(|error| port_error(OP, Path::new(schema), &error))
}

/// No row may be missing when the originals are dropped.
fn check_copy(connection: &Connection, table: &str, from: &Path) -> PortResult<()> {
    let (had, has) = (
        rows(connection, "main", table)?,
        rows(connection, "moved", table)?,
    );
    if had == has {
        return Ok(());
    }
    let detail = format!(
        "{has} of {had} rows of {table} were copied; {} is unchanged, please report this",
        from.display()
    );
    Err(PortError::new(ErrorKind::Bug, BACKEND, OP, detail))
}

fn invalid(detail: String) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
}
