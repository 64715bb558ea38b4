//! Totals that are asked for often and must not be counted anew: summed up over a commit group, written once per group.

use rusqlite::Connection;

/// One row of the `counters` table.
pub(crate) type CounterName = &'static str;

/// What the calls of one group change.
#[derive(Debug, Default)]
pub(crate) struct CounterChanges(Vec<(CounterName, i64)>);

impl CounterChanges {
    pub(crate) fn add(&mut self, name: CounterName, change: i64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += change,
            None => self.0.push((name, change)),
        }
    }

    /// A file without totals has no table for them.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut statement = connection.prepare_cached(
            "INSERT INTO counters (name, value) VALUES (?1, ?2) \
             ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        )?;
        for (name, change) in self.0.iter().filter(|(_, change)| *change != 0) {
            statement.execute((name, change))?;
        }
        Ok(())
    }
}

/// All totals as they are now.
#[derive(Debug)]
pub(crate) struct Counters(Vec<(String, i64)>);

impl Counters {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        connection
            .prepare_cached("SELECT name, value FROM counters")?
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()
            .map(Self)
    }

    /// A counter that was never moved is 0.
    pub(crate) fn get(&self, name: CounterName) -> u64 {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map_or(0, |(_, value)| u64::try_from(*value).unwrap_or(0))
    }
}
