//! Counting the usual way, as a measure: one `UPDATE … SET hits = hits + 1` in SQLite for every click, which looks the
//! link up at the same time. So works chhoto-url, and many a small shortener. SQLite alone, on one thread and without HTTP.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rusqlite::{Connection, params};

use super::store::{PreparedStore, file_bytes};
use super::{SuiteOptions, say, target_of};
use crate::cpu;
use crate::keys::{KeySet, Pick, Sampler};

const HIT: &str = "UPDATE urls SET hits = hits + 1 WHERE short_url = ?1 RETURNING long_url";

/// What a click costs this way.
#[derive(Clone, Debug)]
pub(super) struct Yardstick {
    pub(super) name: &'static str,
    pub(super) per_second: f64,
    pub(super) cpu_us: f64,
    pub(super) written_per_click: f64,
}

pub(super) fn run(options: &SuiteOptions, store: &PreparedStore) -> anyhow::Result<Vec<Yardstick>> {
    say("==> yardstick: one UPDATE per click in SQLite");
    let file = store.folder("hits").join("hits.db");
    fs::create_dir_all(store.folder("hits"))?;
    let mut hits = Hits::fill(&file, &store.keys)?;
    let length = Duration::from_secs_f64(options.seconds);
    let hot = Pick::zipf(&store.keys.prefix(1));
    let zipf = &store.popularity;
    let mut all = Vec::new();
    for (name, synchronous, pick) in [
        (
            "one UPDATE per click, Zipf, synchronous=NORMAL",
            "NORMAL",
            zipf,
        ),
        ("one UPDATE per click, Zipf, synchronous=FULL", "FULL", zipf),
        (
            "one UPDATE per click, one link, synchronous=NORMAL",
            "NORMAL",
            &hot,
        ),
    ] {
        let found = hits.measure(name, synchronous, pick, length)?;
        say(&format!(
            "    {name:<52} {:.2} µs, {:.0} B written per click",
            found.cpu_us, found.written_per_click
        ));
        all.push(found);
    }
    Ok(all)
}

/// A table of links with a count each.
struct Hits<'a> {
    connection: Connection,
    keys: &'a KeySet,
}

impl<'a> Hits<'a> {
    fn fill(file: &Path, keys: &'a KeySet) -> anyhow::Result<Self> {
        let mut connection =
            Connection::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.execute_batch(
            "CREATE TABLE urls (id INTEGER PRIMARY KEY AUTOINCREMENT, long_url TEXT NOT NULL, \
             short_url TEXT NOT NULL, hits INTEGER NOT NULL, expiry_time INTEGER NOT NULL DEFAULT 0); \
             CREATE UNIQUE INDEX idx_short_url ON urls (short_url);",
        )?;
        let filling = connection.transaction()?;
        {
            let mut insert = filling
                .prepare("INSERT INTO urls (long_url, short_url, hits) VALUES (?1, ?2, 0)")?;
            for place in 0..keys.len() {
                let key = keys.text(place);
                insert.execute(params![target_of(&key), key])?;
            }
        }
        filling.commit()?;
        anyhow::ensure!(file_bytes(file)? > 0, "nothing was stored");
        Ok(Self { connection, keys })
    }

    fn measure(
        &mut self,
        name: &'static str,
        synchronous: &str,
        pick: &Pick,
        length: Duration,
    ) -> anyhow::Result<Yardstick> {
        self.connection
            .pragma_update(None, "synchronous", synchronous)?;
        self.checkpoint()?;
        let mut sampler = Sampler::new(pick.clone(), self.keys.len(), 1);
        let written = cpu::written_bytes_of_thread()?;
        let (began, spent) = (Instant::now(), cpu::thread_time());
        let mut clicks = 0_u64;
        while began.elapsed() < length {
            // Asking for the time costs a little, too.
            for _ in 0..16 {
                self.hit(sampler.draw())?;
                clicks += 1;
            }
        }
        let elapsed = began.elapsed();
        self.checkpoint()?;
        let spent = cpu::thread_time().saturating_sub(spent);
        let written = cpu::written_bytes_of_thread()? - written;
        Ok(Yardstick {
            name,
            per_second: clicks as f64 / elapsed.as_secs_f64(),
            cpu_us: spent.as_secs_f64() * 1e6 / clicks as f64,
            written_per_click: written as f64 / clicks as f64,
        })
    }

    fn hit(&self, place: usize) -> rusqlite::Result<()> {
        let key = self.keys.text(place);
        let mut hit = self.connection.prepare_cached(HIT)?;
        hit.query_row([key], |row| row.get::<_, String>(0).map(drop))
    }

    /// What has been written to the log belongs to the clicks that wrote it.
    fn checkpoint(&self) -> rusqlite::Result<()> {
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_click_is_a_transaction_and_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeySet::generated(100, 7, 1);
        let mut hits = Hits::fill(&folder.path().join("hits.db"), &keys).unwrap();
        hits.hit(3).unwrap();
        hits.hit(3).unwrap();
        let stored: i64 = hits
            .connection
            .query_row("SELECT hits FROM urls WHERE id = 4", (), |row| row.get(0))
            .unwrap();
        assert_eq!(stored, 2);
        let found = hits
            .measure(
                "few",
                "NORMAL",
                &Pick::zipf(&keys),
                Duration::from_millis(20),
            )
            .unwrap();
        assert!(found.per_second > 0.0 && found.cpu_us > 0.0, "{found:?}");
        let counted: f64 = hits
            .connection
            .query_row("SELECT sum(hits) FROM urls", (), |row| row.get(0))
            .unwrap();
        assert!(counted > 2.0);
    }
}
