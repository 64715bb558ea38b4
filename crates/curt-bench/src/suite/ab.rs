//! Two builds of curt in turns, to show what a change costs.
//!
//! Each build makes its own database through its own API, so that their schemas need not agree. All figures are costs:
//! a ratio above 1 means that B is worse.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::contender::run_load;
use super::contest::turns;
use super::curt::{ClickCounters, Curt, CurtHome};
use super::process::free_address;
use super::verdict::{Bound, Verdict};
use super::{CONNECTIONS, Cores, TARGET_BYTES, say};
use crate::keys::{KeySet, Pick};
use crate::load::{CreateLoad, Idle, Limit, LoadReport, Plan, RedirectLoad, Shape, create};
use crate::median::Spread;

const BULK_LINKS: usize = 1_000;
const BULK_CONNECTIONS: usize = 4;
/// How long a server that has started is left alone before its memory is read.
const REST: Duration = Duration::from_secs(1);

/// What to compare, and how long.
#[derive(Clone, Debug)]
pub struct AbOptions {
    pub a: PathBuf,
    pub b: PathBuf,
    /// A folder for databases, removed afterwards.
    pub work: PathBuf,
    pub links: u32,
    pub rounds: u32,
    /// Length of one measured run.
    pub seconds: f64,
    /// By how many percent B may be worse.
    pub within: f64,
}

/// One figure of both builds, round by round.
#[derive(Clone, Debug)]
struct Row {
    what: &'static str,
    unit: &'static str,
    values: [Vec<f64>; 2],
}

/// The comparison.
#[derive(Clone, Debug)]
pub struct AbReport {
    rows: Vec<Row>,
    within: f64,
}

/// What is measured in a round.
#[derive(Clone, Copy, Debug)]
enum Figure {
    Redirect(Shape),
    Counted,
    Create(Option<usize>),
    Start,
}

const FIGURES: [Figure; 6] = [
    Figure::Redirect(Shape::Minimal),
    Figure::Redirect(Shape::Browser),
    Figure::Counted,
    Figure::Create(None),
    Figure::Create(Some(BULK_LINKS)),
    Figure::Start,
];

/// One of the builds with its servers.
struct Build {
    label: &'static str,
    /// Clicks are not captured: what a redirect costs by itself.
    silent: Curt,
    /// Default settings.
    usual: Curt,
    keys: Arc<KeySet>,
    usual_keys: Arc<KeySet>,
    api_key: String,
    clicks: ClickCounters,
    /// Of a server that is started again and again.
    started: CurtHome,
    started_key: String,
    seed: u64,
}

/// Takes turns with both builds.
pub fn ab(options: &AbOptions) -> anyhow::Result<AbReport> {
    let work = super::work_folder(&options.work)?;
    let cores = Cores::choose()?;
    let mut builds = [
        Build::set_up(options, &options.a, &work.path().join("a"), "A", cores)?,
        Build::set_up(options, &options.b, &work.path().join("b"), "B", cores)?,
    ];
    let mut report = AbReport {
        rows: Vec::new(),
        within: options.within,
    };
    for round in 0..options.rounds {
        for figure in FIGURES {
            for place in turns(round, 2) {
                let build = &mut builds[place];
                let found = build
                    .measure(figure, options.seconds, cores)
                    .with_context(|| format!("cannot measure build {}", build.label))?;
                for (what, unit, value) in found {
                    say(&format!(
                        "    round {:>2}  {}  {what:<44} {value:>9.2} {unit}",
                        round + 1,
                        build.label
                    ));
                    report.add(place, what, unit, value);
                }
            }
        }
    }
    for build in builds {
        build.silent.stop()?;
        build.usual.stop()?;
    }
    Ok(report)
}

impl AbReport {
    fn add(&mut self, build: usize, what: &'static str, unit: &'static str, value: f64) {
        let place = match self.rows.iter().position(|row| row.what == what) {
            Some(place) => place,
            None => {
                self.rows.push(Row {
                    what,
                    unit,
                    values: Default::default(),
                });
                self.rows.len() - 1
            }
        };
        self.rows[place].values[build].push(value);
    }

    /// Whether B is within the percentage of A, figure by figure.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        let most = 1.0 + self.within / 100.0;
        let rows = self.rows.iter().filter_map(|row| {
            let ratio = Spread::of_ratios(&row.values[1], &row.values[0])?;
            let what = format!("{}, B against A", row.what);
            Some(Verdict::new(what, ratio, Bound::AtMost(most), "×"))
        });
        rows.collect()
    }
}

impl fmt::Display for AbReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| cost | A | B | B / A |")?;
        writeln!(f, "|---|---|---|---|")?;
        for row in &self.rows {
            let [a, b] = &row.values;
            let all = Spread::of(a)
                .zip(Spread::of(b))
                .zip(Spread::of_ratios(b, a));
            if let Some(((a, b), ratio)) = all {
                let (what, unit) = (row.what, row.unit);
                writeln!(f, "| {what}, {unit} | {a:.2} | {b:.2} | {ratio:.3} |")?;
            }
        }
        Ok(())
    }
}

impl Build {
    fn set_up(
        options: &AbOptions,
        program: &Path,
        folder: &Path,
        label: &'static str,
        cores: Cores,
    ) -> anyhow::Result<Self> {
        say(&format!("==> setting up {label}: {}", program.display()));
        let home = |name: &str| {
            let folder = folder.join(name);
            std::fs::create_dir_all(&folder)?;
            CurtHome::new(program, &folder, &folder.join("links.db"))
        };
        let one = ["server.workers=1", "cache.bytes=4GiB"].map(ToOwned::to_owned);
        let off = [&one[..], &["clicks.capture=false".to_owned()]].concat();
        let quiet = home("silent")?;
        let silent = quiet.start(&[], &off, cores.server.as_slice())?;
        let keys = fill(&silent, &quiet.api_key()?, options.links)?;
        let usual_home = home("usual")?;
        let usual = usual_home.start(&[], &one, cores.server.as_slice())?;
        let api_key = usual_home.api_key()?;
        let usual_keys = fill(&usual, &api_key, options.links)?;
        let started = home("started")?;
        let first = started.start(&[], &[], &[])?;
        let started_keys = fill(&first, &started.api_key()?, options.links)?;
        first.stop()?;
        let mut build = Self {
            label,
            clicks: usual.clicks(&usual_home)?,
            silent,
            usual,
            keys,
            usual_keys,
            api_key,
            started,
            started_key: started_keys.text(0),
            seed: 1,
        };
        // Caches fill, and the first round is like the others.
        for figure in &FIGURES[..3] {
            build.measure(*figure, options.seconds, cores)?;
        }
        Ok(build)
    }

    fn measure(
        &mut self,
        figure: Figure,
        seconds: f64,
        cores: Cores,
    ) -> anyhow::Result<Vec<(&'static str, &'static str, f64)>> {
        self.seed += 1;
        match figure {
            Figure::Redirect(shape) => {
                let report = self.redirect(false, shape, seconds, cores)?;
                let what = match shape {
                    Shape::Minimal => "redirect, minimal requests",
                    _ => "redirect, browser requests",
                };
                let cpu = report.server_cpu_us().unwrap_or_default();
                Ok(vec![(what, "µs CPU", cpu)])
            }
            Figure::Counted => {
                let before = self.clicks.read()?;
                let began = self.usual.process().reading()?;
                let report = self.redirect(true, Shape::Browser, seconds, cores)?;
                self.clicks.wait_until_counted(before, report.requests)?;
                let spent = self.usual.process().reading()?.since(&began).all;
                let cpu = spent as f64 / 1e3 / report.requests as f64;
                let what = "redirect with its click counted, browser requests";
                Ok(vec![(what, "µs CPU", cpu)])
            }
            Figure::Create(bulk) => self.create(bulk, seconds),
            Figure::Start => self.start(),
        }
    }

    fn redirect(
        &self,
        counted: bool,
        shape: Shape,
        seconds: f64,
        cores: Cores,
    ) -> anyhow::Result<LoadReport> {
        let (server, keys) = match counted {
            true => (&self.usual, &self.usual_keys),
            false => (&self.silent, &self.keys),
        };
        let mut plan = Plan::new(server.http);
        plan.connections = CONNECTIONS;
        plan.limit = Limit::seconds(seconds);
        plan.idle = Idle::Spin;
        plan.seed = self.seed;
        plan.server = Some(server.process());
        let load = RedirectLoad {
            pick: Pick::zipf(keys),
            keys: Arc::clone(keys),
            plan,
            shape,
            target_of: None,
        };
        run_load(cores, &load, self.label)
    }

    fn create(
        &self,
        bulk: Option<usize>,
        seconds: f64,
    ) -> anyhow::Result<Vec<(&'static str, &'static str, f64)>> {
        let mut plan = Plan::new(self.usual.http);
        plan.connections = match bulk {
            Some(_) => BULK_CONNECTIONS,
            None => CONNECTIONS,
        };
        plan.limit = Limit::seconds(seconds);
        plan.server = Some(self.usual.process());
        plan.seed = self.seed;
        let mut load = CreateLoad::new(plan, &self.api_key);
        load.bulk = bulk;
        load.target_bytes = TARGET_BYTES;
        let report = create(&load)?.load;
        ensure!(report.failed() == 0, "creates failed:\n{report}");
        let nanos = report.server_cpu_nanos.unwrap_or_default();
        let cpu = nanos as f64 / 1e3 / report.items.max(1) as f64;
        let wall = 1e6 / report.items_rate();
        Ok(match bulk {
            None => vec![
                ("create, CPU", "µs CPU", cpu),
                ("create, 64 connections", "µs", wall),
            ],
            Some(_) => vec![
                ("create in bulk of 1,000, CPU per link", "µs CPU", cpu),
                ("create in bulk of 1,000, per link", "µs", wall),
            ],
        })
    }

    fn start(&self) -> anyhow::Result<Vec<(&'static str, &'static str, f64)>> {
        let path = format!("/{}", self.started_key);
        let (server, taken) = self.started.start_timed(free_address()?, &path)?;
        thread::sleep(REST);
        let memory = server.resident_bytes()? / 1_048_576.0;
        server.stop()?;
        Ok(vec![
            (
                "start to the first redirect",
                "ms",
                taken.as_secs_f64() * 1e3,
            ),
            ("idle memory", "MiB", memory),
        ])
    }
}

/// Makes links through the API and returns their keys.
fn fill(server: &Curt, api_key: &str, links: u32) -> anyhow::Result<Arc<KeySet>> {
    let per_request = (links as usize).clamp(1, BULK_LINKS);
    let mut plan = Plan::new(server.http);
    plan.connections = BULK_CONNECTIONS;
    plan.limit = Limit::requests((links as usize).div_ceil(per_request) as u64);
    let mut load = CreateLoad::new(plan, api_key);
    load.bulk = Some(per_request);
    load.target_bytes = TARGET_BYTES;
    load.keep_keys = true;
    let made = create(&load)?;
    ensure!(
        made.load.failed() == 0,
        "cannot make the links:\n{}",
        made.load
    );
    Ok(Arc::new(made.keys.iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::verdict::Standing;

    #[test]
    fn rows_are_paired_by_round_and_judged() {
        let mut report = AbReport {
            rows: Vec::new(),
            within: 5.0,
        };
        for (a, b) in [(10.0, 10.2), (20.0, 20.2), (10.0, 9.9)] {
            report.add(0, "redirect", "µs", a);
            report.add(1, "redirect", "µs", b);
            report.add(0, "start", "ms", a);
            report.add(1, "start", "ms", b * 1.2);
        }
        let text = report.to_string();
        assert!(
            text.contains(
                "| redirect, µs | 10.00 [10.00–20.00] | 10.20 [9.90–20.20] | 1.010 [0.990–1.020] |"
            ),
            "{text}"
        );
        let standings: Vec<Standing> = report.verdicts().iter().map(Verdict::standing).collect();
        assert_eq!(standings, [Standing::Pass, Standing::Fail]);
    }
}
