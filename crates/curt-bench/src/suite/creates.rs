//! Durable creates: curt over HTTP against the same rows written into SQLite by hand.

use std::time::Duration;

use anyhow::ensure;

use super::contest::{Series, turns};
use super::curt::{Curt, CurtHome};
use super::promises;
use super::rows::RowWriter;
use super::store::PreparedStore;
use super::{CONNECTIONS, SuiteOptions, TARGET_BYTES, say};
use crate::load::{CreateLoad, Limit, LoadReport, Plan, create};
use crate::median::grouped;

/// Links per bulk request, and connections that send them.
const BULK_LINKS: usize = 1_000;
const BULK_CONNECTIONS: usize = 4;
/// Rows per transaction of the group commit by hand.
const GROUP_ROWS: usize = 256;

/// Turns of each side in a round, and those in addition while a promise is undecided, as a multiple of the usual ones.
const TURNS: u32 = 2;
const EXTRA: u32 = 1;

pub(super) const SINGLE_ROWS: &str = "SQLite alone, one transaction per row";
pub(super) const GROUPED_ROWS: &str = "SQLite alone, groups of 256";
pub(super) const HTTP_SINGLE: &str = "curt over HTTP, 64 connections";
pub(super) const HTTP_BULK: &str = "curt over HTTP, bulk of 1,000";

const CONTENDERS: [&str; 4] = [SINGLE_ROWS, GROUPED_ROWS, HTTP_SINGLE, HTTP_BULK];

/// Links per second, one series per contender.
#[derive(Clone, Debug)]
pub(super) struct CreateResults {
    pub(super) series: Vec<Series>,
}

impl CreateResults {
    pub(super) fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }
}

/// Both sides, each over its own copy of the same file.
struct Sides {
    rows: RowWriter,
    server: Curt,
    api_key: String,
    seed: u64,
}

pub(super) fn run(options: &SuiteOptions, store: &PreparedStore) -> anyhow::Result<CreateResults> {
    say("==> creates: starting the server");
    let home = CurtHome::new(
        &options.curt,
        &store.folder("curt-create"),
        &store.copy("create")?,
    )?;
    let server = home.start(&[], &[], &[])?;
    let mut sides = Sides {
        rows: RowWriter::open(&store.copy("rows")?)?,
        api_key: home.api_key()?,
        server,
        seed: 1,
    };
    // Both sides meet the first round with warm caches.
    let warm_up = Duration::from_secs_f64((options.seconds / 3.0).min(1.0));
    sides.rows.rate(GROUP_ROWS, warm_up)?;
    sides.load(None, CONNECTIONS, warm_up)?;

    let length = Duration::from_secs_f64(options.seconds / f64::from(TURNS));
    let mut results = CreateResults {
        series: CONTENDERS.map(Series::new).to_vec(),
    };
    let usual = options.rounds * TURNS;
    for turn in 0..usual * (1 + EXTRA) {
        let names = match turn < usual {
            true => CONTENDERS.to_vec(),
            false => promises::undecided_creates(&results),
        };
        for place in turns(turn, CONTENDERS.len()) {
            if !names.contains(&CONTENDERS[place]) {
                continue;
            }
            let series = &mut results.series[place];
            match CONTENDERS[place] {
                SINGLE_ROWS => series.add_rate(turn, sides.rows.rate(1, length)?),
                GROUPED_ROWS => series.add_rate(turn, sides.rows.rate(GROUP_ROWS, length)?),
                HTTP_SINGLE => series.add(turn, &sides.load(None, CONNECTIONS, length)?),
                _ => series.add(
                    turn,
                    &sides.load(Some(BULK_LINKS), BULK_CONNECTIONS, length)?,
                ),
            }
            let rate = series.values.last().map_or(0.0, |last| last.rate);
            say(&format!(
                "    turn {:>2}  {:<40} {:>8} links per second",
                turn + 1,
                CONTENDERS[place],
                grouped(rate)
            ));
        }
    }
    sides.server.stop()?;
    Ok(results)
}

impl Sides {
    fn load(
        &mut self,
        bulk: Option<usize>,
        connections: usize,
        length: Duration,
    ) -> anyhow::Result<LoadReport> {
        let mut plan = Plan::new(self.server.http);
        plan.connections = connections;
        plan.limit = Limit {
            duration: length,
            requests: None,
        };
        plan.server = Some(self.server.process());
        // Another seed each time: no target is created twice.
        self.seed += 1;
        plan.seed = self.seed;
        let mut load = CreateLoad::new(plan, &self.api_key);
        load.bulk = bulk;
        load.target_bytes = TARGET_BYTES;
        let report = create(&load)?.load;
        ensure!(report.failed() == 0, "curt failed creates:\n{report}");
        Ok(report)
    }
}
