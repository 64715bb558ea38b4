//! Runs of counts.

use async_trait::async_trait;
use curt_adapter_kit::rollup_runs::{ChunkEdit, FoundChunk, NewRun, RollupRuns, RunEntry};
use curt_core::{Day, PortResult};
use rusqlite::{Connection, Row};

use super::SqliteClicks;
use super::damage::Damaged;
use crate::failure::BACKEND;

#[async_trait]
impl RollupRuns for SqliteClicks {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn find(
        &self,
        key: &[u8],
        first: Day,
        last: Day,
        limit: usize,
    ) -> PortResult<Vec<FoundChunk>> {
        let key = key.to_vec();
        self.db
            .readers
            .scan("find counts", move |connection| {
                find(connection, &key, first, last, limit)
            })
            .await
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<RunEntry>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.db
            .readers
            .scan_in_background("list small runs of counts", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT id, day, bytes, edits FROM rollup_runs INDEXED BY rollup_runs_small WHERE bytes < 8388608 \
                         AND NOT EXISTS (SELECT 1 FROM click_damage WHERE kind = 0 AND id = rollup_runs.id) \
                         ORDER BY id DESC LIMIT ?1",
                    )?
                    .query_map([limit], entry)?
                    .collect()
            })
            .await
    }

    async fn read(&self, id: i64) -> PortResult<Vec<Vec<u8>>> {
        self.db
            .readers
            .scan_in_background("read a run of counts", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT content FROM rollup_chunks WHERE run = ?1 ORDER BY first_key",
                    )?
                    .query_map([id], |row| row.get(0))?
                    .collect()
            })
            .await
    }

    async fn replace(&self, old: &[RunEntry], new: NewRun) -> PortResult<bool> {
        let old = old.to_vec();
        let rows = new.chunks.len();
        self.db
            .writer
            .write("merge runs of counts", rows, move |work| {
                replace(work.connection, &old, &new)
            })
            .await
    }

    async fn edit_chunk(&self, edit: ChunkEdit) -> PortResult<bool> {
        self.db
            .writer
            .write("edit a run of counts", 1, move |work| {
                edit_chunk(work.connection, &edit)
            })
            .await
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        self.set_aside(Damaged::Run, id).await
    }
}

pub(super) fn add(connection: &Connection, run: &NewRun) -> rusqlite::Result<()> {
    let bytes = run.bytes().cast_signed();
    let id = connection
        .prepare_cached("INSERT INTO rollup_runs (day, subjects, bytes) VALUES (?1, ?2, ?3)")?
        .insert((run.day.number(), run.subjects, bytes))?;
    let mut add_chunk = connection.prepare_cached(
        "INSERT INTO rollup_chunks (run, first_key, content) VALUES (?1, ?2, ?3)",
    )?;
    for chunk in &run.chunks {
        add_chunk.execute((id, &chunk.first_key, &chunk.content))?;
    }
    Ok(())
}

/// Removes whole runs of the oldest days until `limit` subjects are gone.
pub(super) fn purge(connection: &Connection, before: Day, limit: usize) -> rusqlite::Result<u64> {
    let mut purged = 0;
    while purged < limit as u64 {
        let oldest: Vec<(i64, u32)> = connection
            .prepare_cached(
                "SELECT id, subjects FROM rollup_runs WHERE day < ?1 ORDER BY day, id LIMIT 1",
            )?
            .query_map([before.number()], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let Some((id, subjects)) = oldest.first() else {
            break;
        };
        remove(connection, *id)?;
        purged += u64::from(*subjects);
    }
    Ok(purged)
}

fn find(
    connection: &Connection,
    key: &[u8],
    first: Day,
    last: Day,
    limit: usize,
) -> rusqlite::Result<Vec<FoundChunk>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(include_str!("sql/find_chunks.sql"))?
        .query_map((key, first.number(), last.number(), limit), |row| {
            Ok(FoundChunk {
                day: Day::numbered(row.get(0)?),
                content: row.get(1)?,
                run: row.get(2)?,
                edits: row.get(3)?,
            })
        })?
        .collect()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<RunEntry> {
    let bytes: i64 = row.get(2)?;
    Ok(RunEntry {
        id: row.get(0)?,
        day: Day::numbered(row.get(1)?),
        bytes: bytes.cast_unsigned(),
        edits: row.get(3)?,
    })
}

fn replace(connection: &Connection, old: &[RunEntry], new: &NewRun) -> rusqlite::Result<bool> {
    for run in old {
        if !is_unchanged(connection, run.id, run.edits)? {
            return Ok(false);
        }
    }
    for run in old {
        remove(connection, run.id)?;
    }
    add(connection, new)?;
    Ok(true)
}

fn is_unchanged(connection: &Connection, id: i64, edits: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM rollup_runs WHERE id = ?1 AND edits = ?2)")?
        .query_row((id, edits), |row| row.get(0))
}

fn edit_chunk(connection: &Connection, edit: &ChunkEdit) -> rusqlite::Result<bool> {
    if !is_unchanged(connection, edit.run, edit.edits)? {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "UPDATE rollup_runs SET edits = edits + 1, subjects = max(subjects - 1, 0), bytes = max(bytes + ?2, 0) \
             WHERE id = ?1",
        )?
        .execute((edit.run, edit.bytes_added()))?;
    match &edit.rest {
        Some(rest) => connection
            .prepare_cached(
                "UPDATE rollup_chunks SET first_key = ?3, content = ?4 WHERE run = ?1 AND first_key = ?2",
            )?
            .execute((edit.run, &edit.first_key, &rest.first_key, &rest.content))?,
        None => connection
            .prepare_cached("DELETE FROM rollup_chunks WHERE run = ?1 AND first_key = ?2")?
            .execute((edit.run, &edit.first_key))?,
    };
    Ok(true)
}

fn remove(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM rollup_chunks WHERE run = ?1")?
        .execute([id])?;
    connection
        .prepare_cached("DELETE FROM rollup_runs WHERE id = ?1")?
        .execute([id])
        .map(drop)
}
