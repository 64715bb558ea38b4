//! What clicks take on disk: a mix of many visitors, browsers, bots, referrers and languages, on an empty clicks database.

use std::path::Path;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags};

use super::contender::Contender;
use super::curt::CurtHome;
use super::store::{PreparedStore, file_bytes};
use super::{Cores, SuiteOptions, say};
use crate::load::{Idle, Limit, Shape};

/// Visitors' addresses at a time. With the agents of the mix these are some hundred thousand visitors.
const ADDRESSES: usize = 1_024;
/// Windows of clicks: each is counted before more come, as 2,000 clicks a second are after two minutes.
const WINDOWS: u64 = 4;
/// Clicks in the window of a small site, where few share what is written at a time.
const FEW: u64 = 15_000;

/// What the mix took.
#[derive(Clone, Debug)]
pub(super) struct KeptResults {
    pub(super) clicks: u64,
    /// Sent to disks per click, until the server had stopped.
    pub(super) written_per_click: f64,
    /// The same of a site with few clicks, in one window, and how many they were.
    pub(super) written_per_click_few: f64,
    pub(super) clicks_few: u64,
    /// Growth of the clicks database per click.
    pub(super) kept_per_click: f64,
    /// The same where no single clicks are kept: the counts alone.
    pub(super) counts_per_click: f64,
    /// Bytes per click by table and index, largest first.
    pub(super) tables: Vec<(String, f64)>,
}

impl KeptResults {
    /// What keeping single clicks adds to the counts.
    pub(super) fn single_bytes(&self) -> f64 {
        self.kept_per_click - self.counts_per_click
    }
}

/// What one server did.
struct Run {
    written_per_click: f64,
    kept_per_click: f64,
    tables: Vec<(String, f64)>,
}

pub(super) fn run(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
) -> anyhow::Result<KeptResults> {
    say("==> clicks on disk");
    let clicks = u64::from(options.links);
    let measure = Measure {
        options,
        cores,
        store,
    };
    let all = measure.run("kept", &[], clicks, WINDOWS)?;
    let counts = measure.run("counts", &["clicks.retention=0s"], clicks, WINDOWS)?;
    let few = measure.run("few", &[], FEW, 1)?;
    Ok(KeptResults {
        clicks,
        written_per_click: all.written_per_click,
        written_per_click_few: few.written_per_click,
        clicks_few: FEW,
        kept_per_click: all.kept_per_click,
        counts_per_click: counts.kept_per_click,
        tables: all.tables,
    })
}

struct Measure<'a> {
    options: &'a SuiteOptions,
    cores: Cores,
    store: &'a PreparedStore,
}

impl Measure<'_> {
    fn run(
        &self,
        name: &'static str,
        settings: &[&str],
        clicks: u64,
        windows: u64,
    ) -> anyhow::Result<Run> {
        let folder = self.store.folder(&format!("curt-{name}"));
        let home = CurtHome::new(&self.options.curt, &folder, &self.store.copy(name)?)?;
        let settings: Vec<String> = settings.iter().map(|one| (*one).to_owned()).collect();
        // An empty database has a size, too, and starting writes to it.
        home.start(&[], &settings, self.cores.server.as_slice())?
            .stop()?;
        let bytes_before = file_bytes(&home.clicks_file)?;
        let server = home.start(&[], &settings, self.cores.server.as_slice())?;
        let written_before = server.written_bytes()?;
        let counters = server.clicks(&home)?;
        let contender = Contender {
            clicks: Some(counters.clone()),
            ..Contender::curt(name, &server, self.store)
        };
        for window in 0..windows {
            let mut load = contender.load(crate::load::DURATION_MAX, Shape::Mixed, window + 1);
            load.plan.limit = Limit::requests((clicks / windows).max(1));
            load.plan.connections = ADDRESSES;
            load.plan.own_addresses = true;
            load.plan.idle = Idle::Sleep;
            contender.measure(self.cores, &load)?;
        }
        let counted = counters.read()?.counted as f64;
        let written = server.stop_and_read_written_bytes()? - written_before;
        let run = Run {
            written_per_click: written as f64 / counted,
            kept_per_click: (file_bytes(&home.clicks_file)? - bytes_before) as f64 / counted,
            tables: bytes_by_table(&home.clicks_file)?
                .into_iter()
                .map(|(table, bytes)| (table, bytes as f64 / counted))
                .collect(),
        };
        say(&format!(
            "    {name:<8} {:.1} B written and {:.1} B kept per click",
            run.written_per_click, run.kept_per_click
        ));
        Ok(run)
    }
}

/// Bytes of pages by table and index, largest first.
fn bytes_by_table(file: &Path) -> anyhow::Result<Vec<(String, i64)>> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("cannot open {}", file.display()))?;
    let mut statement = connection.prepare(
        "SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name ORDER BY bytes DESC, name",
    )?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_listed_by_size() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("some.db");
        let connection = Connection::open(&file).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE small (a); CREATE TABLE large (a); INSERT INTO large VALUES (zeroblob(100000));",
            )
            .unwrap();
        drop(connection);
        let tables = bytes_by_table(&file).unwrap();
        assert_eq!(tables[0].0, "large");
        assert!(tables[0].1 > 100_000, "{tables:?}");
        assert!(tables.contains(&("small".to_owned(), 4_096)));
    }
}
