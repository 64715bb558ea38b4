//! Redirects: curt with all links cached and with few, without and with users, nginx without a look-up and with one;
//! each with and without writing clicks down.

use std::time::Duration;

use super::contender::Contender;
use super::contest::{Figures, Series, turns};
use super::field::Field;
use super::promises;
use super::store::PreparedStore;
use super::{Cores, SuiteOptions, say};
use crate::load::Shape;
use crate::median::grouped;

/// Share of nginx's saturated rate at which latencies are compared.
pub(super) const OFFERED_SHARE: f64 = 0.5;
/// The share of its core that a saturated server uses when nothing else runs.
const BUSY_WANTED: f64 = 0.85;

pub(super) const CURT_WRITING: &str = "curt, clicks written down";
pub(super) const CURT_SILENT: &str = "curt, all links cached";
pub(super) const CURT_USERS: &str = "curt, all cached, accounts and limits on";
pub(super) const CURT_SMALL: &str = "curt, 5 % of the links cached";
pub(super) const NGINX_PLAIN: &str = "nginx `return 302`, no look-up";
pub(super) const NGINX_LOG: &str = "nginx `return 302`, access log";
pub(super) const NGINX_LOG_BUFFERED: &str = "nginx `return 302`, access log with buffer=64k";
pub(super) const NGINX_MAP: &str = "nginx, map of 100,000";

/// Those whose latencies are compared.
const OFFERED: [&str; 5] = [
    CURT_SILENT,
    CURT_WRITING,
    CURT_SMALL,
    NGINX_PLAIN,
    NGINX_LOG,
];

/// Turns that each server gets in a round, the others' in between: what disturbs the machine for a second then disturbs
/// one turn of many, and not a third of one server's figures.
const TURNS: u32 = 3;
/// The same for latencies, which want longer turns.
const OFFERED_TURNS: u32 = 2;
/// Turns that the servers of an undecided promise get in addition, as a multiple of the usual ones.
const EXTRA: u32 = 1;

/// Everything found about redirects.
#[derive(Clone, Debug)]
pub(super) struct RedirectResults {
    pub(super) shapes: Vec<ShapeResults>,
    pub(super) memory: CacheMemory,
    /// Clicks that no server had room to write down.
    pub(super) clicks_dropped: u64,
}

/// The results for one shape of request.
#[derive(Clone, Debug)]
pub(super) struct ShapeResults {
    pub(super) shape: Shape,
    /// Saturated, closed loop.
    pub(super) saturated: Vec<Series>,
    /// At the same offered rate, open loop; empty without nginx.
    pub(super) offered: Vec<Series>,
    pub(super) offered_rate: f64,
}

/// What cached links cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheMemory {
    pub(super) links: f64,
    /// Per link, by the server's own account.
    pub(super) counted_bytes: f64,
    /// Per link, by what the process grew while the cache filled from a twentieth of the links to all of them.
    pub(super) resident_growth_bytes: f64,
    pub(super) resident_before: f64,
    pub(super) resident_after: f64,
}

/// A comparison under way.
struct Contest<'a> {
    options: &'a SuiteOptions,
    cores: Cores,
    contenders: &'a [Contender],
}

pub(super) fn run(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
) -> anyhow::Result<(RedirectResults, bool)> {
    let field = Field::start(options, cores, store)?;
    let contest = Contest {
        options,
        cores,
        contenders: &field.contenders,
    };
    let mut shapes: Vec<ShapeResults> = Shape::BOTH
        .into_iter()
        .map(|shape| ShapeResults::new(shape, &field.contenders))
        .collect();
    let all: Vec<&str> = field.contenders.iter().map(|one| one.name).collect();
    let usual = options.rounds * TURNS;
    for turn in 0..usual {
        for results in &mut shapes {
            contest.saturate(turn, &all, results)?;
        }
    }
    for turn in usual..usual * (1 + EXTRA) {
        for results in &mut shapes {
            let undecided = promises::undecided_rates(results);
            contest.saturate(turn, &undecided, results)?;
        }
    }
    for results in &mut shapes {
        results.fix_offered_rate();
    }
    let usual = options.rounds * OFFERED_TURNS;
    for turn in 0..usual * (1 + EXTRA) {
        for results in &mut shapes {
            let offered = match turn < usual {
                true => OFFERED.to_vec(),
                false => promises::undecided_latencies(results),
            };
            contest.offer(turn, &offered, results)?;
        }
    }
    let memory = field.memory;
    let (mut clicks_dropped, mut io_uring) = (0, true);
    for curt in &field.curts {
        clicks_dropped += curt.clicks_dropped()?;
        io_uring &= curt.uses_io_uring()?;
    }
    field.stop()?;
    let results = RedirectResults {
        shapes,
        memory,
        clicks_dropped,
    };
    Ok((results, io_uring))
}

impl ShapeResults {
    fn new(shape: Shape, contenders: &[Contender]) -> Self {
        Self {
            shape,
            saturated: contenders.iter().map(|one| Series::new(one.name)).collect(),
            offered: Vec::new(),
            offered_rate: 0.0,
        }
    }

    pub(super) fn series(&self, name: &str) -> Option<&Series> {
        self.saturated.iter().find(|series| series.name == name)
    }

    pub(super) fn offered_series(&self, name: &str) -> Option<&Series> {
        self.offered.iter().find(|series| series.name == name)
    }

    /// A word of warning when a server had less than its core, by the median of the rounds.
    pub(super) fn disturbance(&self) -> Option<String> {
        let least = self
            .saturated
            .iter()
            .filter_map(|series| series.spread(|figures| figures.busy))
            .map(|busy| busy.median)
            .min_by(f64::total_cmp)?;
        (least < BUSY_WANTED).then(|| {
            format!(
                "With {} requests a server was busy for only {least:.2} of a core: other programs ran, or the generator \
                 was the slower side. Figures per CPU second still compare; rates and latencies do not.",
                self.shape.name()
            )
        })
    }

    /// Fixes the offered rate by what nginx could do at most.
    fn fix_offered_rate(&mut self) {
        let saturated = self
            .series(NGINX_PLAIN)
            .and_then(|series| series.spread(|figures| figures.rate));
        if let Some(rate) = saturated {
            self.offered_rate = rate.median * OFFERED_SHARE;
            self.offered = OFFERED.map(Series::new).to_vec();
        }
    }
}

impl Contest<'_> {
    /// Those of `names` in the order of this turn.
    fn order(&self, turn: u32, names: &[&str]) -> impl Iterator<Item = &Contender> {
        turns(turn, self.contenders.len())
            .into_iter()
            .map(|place| &self.contenders[place])
            .filter(move |contender| names.contains(&contender.name))
    }

    fn saturate(
        &self,
        turn: u32,
        names: &[&str],
        results: &mut ShapeResults,
    ) -> anyhow::Result<()> {
        let length = self.options.seconds / f64::from(TURNS);
        for contender in self.order(turn, names) {
            let load = contender.load(
                Duration::from_secs_f64(length),
                results.shape,
                u64::from(turn) + 1,
            );
            let measured = contender.measure(self.cores, &load)?;
            let busy = measured.report.server_busy().unwrap_or_default();
            let last = add(&mut results.saturated, contender.name, turn, &measured);
            say(&format!(
                "    turn {:>2}  {:<8} {:<48} {:>9} per CPU second, {busy:.2} busy",
                turn + 1,
                results.shape.name(),
                contender.name,
                grouped(last.per_cpu_second),
            ));
        }
        Ok(())
    }

    fn offer(&self, turn: u32, names: &[&str], results: &mut ShapeResults) -> anyhow::Result<()> {
        if results.offered.is_empty() {
            return Ok(());
        }
        let length = self.options.seconds / f64::from(OFFERED_TURNS);
        for contender in self.order(turn, names) {
            let mut load = contender.load(
                Duration::from_secs_f64(length),
                results.shape,
                u64::from(turn) + 101,
            );
            load.plan.rate = Some(results.offered_rate);
            let measured = contender.measure(self.cores, &load)?;
            let last = add(&mut results.offered, contender.name, turn, &measured);
            say(&format!(
                "    turn {:>2}  {:<8} {:<48} p99 {:.0} µs at {}/s",
                turn + 1,
                results.shape.name(),
                contender.name,
                last.p99_us,
                grouped(results.offered_rate)
            ));
        }
        Ok(())
    }
}

/// Adds a run to the series of that name, and returns its figures.
pub(super) fn add(
    all: &mut [Series],
    name: &str,
    turn: u32,
    measured: &super::contender::Measured,
) -> Figures {
    let Some(series) = all.iter_mut().find(|series| series.name == name) else {
        return Figures::default();
    };
    measured.add_to(series, turn);
    series.values.last().copied().unwrap_or_default()
}
