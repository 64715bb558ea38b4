//! What SQLite alone can do: the same table, indexes and settings, one thread, no HTTP.
//!
//! The rows carry what curt stores for a link, and nothing else is done for them: curt also keeps totals and judges
//! keys, which makes this the harder measure.

use std::path::Path;
use std::time::{Duration, Instant};

use curt_core::{Clock as _, KeyOrigin, SystemClock};
use rusqlite::{Connection, params};

use super::{KEY_WIDTH, TARGET_BYTES};
use crate::keys::{KeySet, target_for};

/// Keys that are generated at a time.
const KEY_BLOCK: u32 = 100_000;

const INSERT: &str = "INSERT INTO links (domain, key, target, owner, state, origin, generation, version, created_at, \
     expires_at, visibility, was_permanent, forward_query) \
     VALUES (0, ?1, ?2, 1, 0, ?3, 1, 1, ?4, ?5, 0, 0, 0) ON CONFLICT (domain, key) DO NOTHING";

/// One connection that inserts links by hand.
#[derive(Debug)]
pub(super) struct RowWriter {
    connection: Connection,
    keys: KeySet,
    next: usize,
    seed: u64,
}

impl RowWriter {
    /// Opens a data file that curt's own migrations made, with the settings that curt uses by default.
    pub(super) fn open(file: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(file)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -32 * 1_024)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        // 16 MiB of log at 4 KiB per page, as curt folds it.
        connection.pragma_update_and_check(None, "wal_autocheckpoint", 4_096, |_| Ok(()))?;
        Ok(Self {
            connection,
            keys: KeySet::default(),
            next: 0,
            seed: 7_000_000,
        })
    }

    /// Commits groups of `group` rows for `duration` and returns rows per second.
    pub(super) fn rate(&mut self, group: usize, duration: Duration) -> rusqlite::Result<f64> {
        let started = Instant::now();
        let mut rows = 0_u64;
        while started.elapsed() < duration {
            rows += self.commit(group)?;
        }
        Ok(rows as f64 / started.elapsed().as_secs_f64())
    }

    fn commit(&mut self, group: usize) -> rusqlite::Result<u64> {
        let keys: Vec<String> = (0..group).map(|_| self.next_key()).collect();
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute(())?;
        let mut rows = 0;
        {
            let mut insert = self.connection.prepare_cached(INSERT)?;
            let now = SystemClock.now().0;
            for key in &keys {
                let target = target_for(key, TARGET_BYTES);
                let origin = KeyOrigin::Random as u8;
                let expires_at = now + 63_072_000_000;
                rows += insert.execute(params![key, target, origin, now, expires_at])?;
            }
        }
        self.connection.prepare_cached("COMMIT")?.execute(())?;
        Ok(rows as u64)
    }

    fn next_key(&mut self) -> String {
        if self.next >= self.keys.len() {
            self.keys = KeySet::generated(KEY_BLOCK, KEY_WIDTH, self.seed);
            self.seed += 1;
            self.next = 0;
        }
        self.next += 1;
        self.keys.text(self.next - 1)
    }
}

#[cfg(test)]
mod tests {
    use curt_sqlite::Sqlite;

    use super::*;

    #[test]
    fn rows_go_into_the_products_own_table_durably() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.db");
        Sqlite::migrate(&file).unwrap();
        let mut writer = RowWriter::open(&file).unwrap();
        assert_eq!(writer.commit(1).unwrap(), 1);
        assert_eq!(writer.commit(256).unwrap(), 256);
        assert!(writer.rate(16, Duration::from_millis(1)).unwrap() > 0.0);
        let asked = |sql: &str| -> String {
            let value = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
            format!("{:?}", writer.connection.query_row(sql, (), value).unwrap())
        };
        assert_eq!(asked("PRAGMA synchronous"), "Integer(2)");
        assert_eq!(asked("PRAGMA journal_mode"), "Text(\"wal\")");
        assert_eq!(asked("SELECT count(*) >= 273 FROM links"), "Integer(1)");
    }
}
