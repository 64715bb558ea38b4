//! Redirects: curt with all links cached and with few, alone and with people, nginx without a look-up and with one; each
//! with and without writing clicks down.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};

use super::contest::{Series, turns};
use super::curt::{CacheGauges, ClickCounters, Curt, CurtHome};
use super::nginx::{Log, Nginx};
use super::store::PreparedStore;
use super::users;
use super::{CONNECTIONS, Cores, MAP_LINKS, SMALL_CACHE_SHARE, SuiteOptions, say, target_of};
use crate::keys::{KeySet, Pick};
use crate::load::{Idle, Limit, LoadReport, Plan, RedirectLoad, ServerProcess, Shape, redirect};
use crate::median::grouped;
use crate::pin;

/// Share of nginx's saturated rate at which latencies are compared.
const OFFERED_SHARE: f64 = 0.5;
/// The share of its core that a saturated server uses when nothing else runs.
const BUSY_WANTED: f64 = 0.85;

pub(super) const CURT_COUNTING: &str = "curt, clicks written down and counted";
pub(super) const CURT_WRITING: &str = "curt, clicks written down";
pub(super) const CURT_SILENT: &str = "curt, all links cached";
pub(super) const CURT_PEOPLE: &str = "curt, all cached, accounts and limits on";
pub(super) const CURT_SMALL: &str = "curt, 5 % of the links cached";
pub(super) const NGINX_PLAIN: &str = "nginx `return 302`, no look-up";
pub(super) const NGINX_LOG: &str = "nginx `return 302`, access log";
pub(super) const NGINX_LOG_BUFFERED: &str = "nginx `return 302`, access log with buffer=64k";
pub(super) const NGINX_MAP: &str = "nginx, map of 100,000";

/// Turns that each server gets in a round of saturation, the others' in between: what disturbs the machine for a second
/// then disturbs one turn of many, and not a third of one server's figures.
const TURNS: u32 = 3;

/// Everything found about redirects.
#[derive(Clone, Debug)]
pub(super) struct RedirectResults {
    pub(super) shapes: Vec<ShapeResults>,
    pub(super) memory: CacheMemory,
    /// Clicks that no server had room to write down.
    pub(super) clicks_dropped: u64,
    /// Whether every server sent by an io_uring.
    pub(super) io_uring: bool,
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

struct Contender {
    name: &'static str,
    addr: SocketAddr,
    process: ServerProcess,
    keys: Arc<KeySet>,
    pick: Pick,
    target_of: Option<fn(&str) -> String>,
    /// Of a server that counts clicks.
    clicks: Option<ClickCounters>,
}

/// What loading a server gave.
struct Measured {
    report: LoadReport,
    /// Processor time that counting the clicks took after the last answer.
    later_nanos: u64,
}

impl Contender {
    /// Loads the server and waits until it has counted the clicks: that is part of their price, and must not run into
    /// the next one's turn.
    fn measure(&self, cores: Cores, load: &RedirectLoad) -> anyhow::Result<Measured> {
        let report = loaded(cores, load, self.name)?;
        let answered = self.process.reading()?;
        if let Some(clicks) = self.clicks {
            clicks.settle()?;
        }
        let later_nanos = self.process.reading()?.since(&answered).all;
        Ok(Measured {
            report,
            later_nanos,
        })
    }

    fn load(&self, options: &SuiteOptions, shape: Shape, seed: u64) -> RedirectLoad {
        let mut plan = Plan::new(self.addr);
        plan.connections = CONNECTIONS;
        plan.limit = Limit::seconds(options.seconds);
        plan.seed = seed;
        plan.idle = Idle::Spin;
        plan.server = Some(self.process);
        RedirectLoad {
            plan,
            keys: self.keys.clone(),
            pick: self.pick.clone(),
            shape,
            target_of: self.target_of,
        }
    }
}

/// The servers of the comparison, all running, loaded one at a time.
struct Field {
    curts: Vec<Curt>,
    nginxes: Vec<Nginx>,
    contenders: Vec<Contender>,
    memory: CacheMemory,
}

pub(super) fn run(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
) -> anyhow::Result<RedirectResults> {
    let field = Field::start(options, cores, store)?;
    let mut shapes: Vec<ShapeResults> = Shape::BOTH
        .into_iter()
        .map(|shape| ShapeResults::new(shape, &field.contenders))
        .collect();
    for round in 0..options.rounds {
        for results in &mut shapes {
            for turn in 0..TURNS {
                saturate(
                    options,
                    cores,
                    &field.contenders,
                    round * TURNS + turn,
                    results,
                )?;
            }
        }
    }
    for results in &mut shapes {
        results.offer(&field.contenders);
    }
    for round in 0..options.rounds {
        for results in &mut shapes {
            offer(options, cores, &field.contenders, round, results)?;
        }
    }
    let memory = field.memory;
    let (mut clicks_dropped, mut io_uring) = (0, true);
    for curt in &field.curts {
        clicks_dropped += curt.clicks().dropped()?;
        io_uring &= curt.uses_io_uring()?;
    }
    field.stop()?;
    Ok(RedirectResults {
        shapes,
        memory,
        clicks_dropped,
        io_uring,
    })
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

    pub(super) fn offered_series(&self, name: &str) -> Option<&Series> {
        self.offered.iter().find(|series| series.name == name)
    }

    /// Fixes the offered rate by what nginx could do at most.
    fn offer(&mut self, contenders: &[Contender]) {
        let saturated = self
            .series(NGINX_PLAIN)
            .and_then(|series| series.spread(|figures| figures.rate));
        if let Some(rate) = saturated {
            self.offered_rate = rate.median * OFFERED_SHARE;
            self.offered = contenders.iter().map(|one| Series::new(one.name)).collect();
        }
    }
}

fn saturate(
    options: &SuiteOptions,
    cores: Cores,
    contenders: &[Contender],
    round: u32,
    results: &mut ShapeResults,
) -> anyhow::Result<()> {
    for turn in turns(round, contenders.len()) {
        let mut load = contenders[turn].load(options, results.shape, u64::from(round) + 1);
        load.plan.limit = Limit::seconds(options.seconds / f64::from(TURNS));
        let Measured {
            report,
            later_nanos,
        } = contenders[turn].measure(cores, &load)?;
        results.saturated[turn].add_with(&report, later_nanos);
        say(&format!(
            "    turn {:>2}  {:<8} {:<32} {:>9} per CPU second, {:.2} busy",
            round + 1,
            results.shape.name(),
            contenders[turn].name,
            grouped(
                results.saturated[turn]
                    .values
                    .last()
                    .map_or(0.0, |figures| figures.per_cpu_second)
            ),
            report.server_busy().unwrap_or_default()
        ));
    }
    Ok(())
}

fn offer(
    options: &SuiteOptions,
    cores: Cores,
    contenders: &[Contender],
    round: u32,
    results: &mut ShapeResults,
) -> anyhow::Result<()> {
    if results.offered.is_empty() {
        return Ok(());
    }
    for turn in turns(round, contenders.len()) {
        let mut load = contenders[turn].load(options, results.shape, u64::from(round) + 101);
        load.plan.rate = Some(results.offered_rate);
        let Measured {
            report,
            later_nanos,
        } = contenders[turn].measure(cores, &load)?;
        results.offered[turn].add_with(&report, later_nanos);
        say(&format!(
            "    round {}  {:<8} {:<32} p99 {:.0} µs at {}/s",
            round + 1,
            results.shape.name(),
            contenders[turn].name,
            report.latency.p99_us,
            grouped(results.offered_rate)
        ));
    }
    Ok(())
}

/// Runs a load on the generator's core. Figures of a server that answered wrongly are worth nothing.
fn loaded(cores: Cores, load: &RedirectLoad, name: &str) -> anyhow::Result<LoadReport> {
    let report = pin::on_core(cores.generator, || redirect(load))
        .context("cannot bind the generator to its core")?
        .with_context(|| format!("cannot load {name}"))?;
    ensure!(report.failed() == 0, "{name} failed requests:\n{report}");
    Ok(report)
}

impl Field {
    fn start(options: &SuiteOptions, cores: Cores, store: &PreparedStore) -> anyhow::Result<Self> {
        say("==> redirects: starting the servers");
        // The pages of clicks that are being written would count as the cache's.
        let (silent, memory) = start_cached(options, cores, store, Clicks::Unnoted)?;
        let (writing, _) = start_cached(options, cores, store, Clicks::Written)?;
        let (counting, _) = start_cached(options, cores, store, Clicks::Counted)?;
        let with_people = start_with_people(options, cores, store)?;
        let small = start_small(options, cores, store, memory.counted_bytes)?;
        let all = (store.keys.clone(), Pick::zipf(&store.keys));
        let contender = |name, server: &Curt| Contender {
            name,
            addr: server.http,
            process: server.process(),
            keys: all.0.clone(),
            pick: all.1.clone(),
            target_of: Some(target_of),
            clicks: None,
        };
        let mut contenders = vec![
            contender(CURT_SILENT, &silent),
            contender(CURT_WRITING, &writing),
            Contender {
                clicks: Some(counting.clicks()),
                ..contender(CURT_COUNTING, &counting)
            },
            contender(CURT_PEOPLE, &with_people),
            contender(CURT_SMALL, &small),
        ];
        let mut nginxes = Vec::new();
        if let Some(nginx) = &options.nginx {
            for (name, folder, log) in [
                (NGINX_PLAIN, "nginx-plain", Log::Off),
                (NGINX_LOG, "nginx-log", Log::On),
                (NGINX_LOG_BUFFERED, "nginx-log-buffered", Log::Buffered),
            ] {
                let plain = Nginx::plain(nginx, &store.folder(folder), cores.server, log)?;
                contenders.push(Contender {
                    name,
                    addr: plain.addr,
                    process: plain.process(),
                    keys: all.0.clone(),
                    pick: all.1.clone(),
                    target_of: None,
                    clicks: None,
                });
                nginxes.push(plain);
            }
            let mapped = Arc::new(store.keys.prefix(MAP_LINKS));
            let folder = store.folder("nginx-map");
            let map = Nginx::with_map(nginx, &folder, cores.server, &mapped)?;
            contenders.push(Contender {
                name: NGINX_MAP,
                addr: map.addr,
                process: map.process(),
                pick: Pick::zipf(&mapped),
                keys: mapped,
                target_of: Some(target_of),
                clicks: None,
            });
            nginxes.push(map);
        }
        // The small cache is measured in its steady state; the others get the same head start.
        for contender in &contenders {
            let load = contender.load(options, Shape::Minimal, 0);
            contender.measure(cores, &load)?;
        }
        Ok(Self {
            curts: vec![silent, writing, counting, with_people, small],
            nginxes,
            contenders,
            memory,
        })
    }

    fn stop(self) -> anyhow::Result<()> {
        for curt in self.curts {
            curt.stop()?;
        }
        for nginx in self.nginxes {
            nginx.stop()?;
        }
        Ok(())
    }
}

/// What a server does about clicks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clicks {
    Unnoted,
    /// To be counted later: what nginx does with its access log.
    Written,
    Counted,
}

impl Clicks {
    fn name(self) -> &'static str {
        match self {
            Self::Unnoted => "silent",
            Self::Written => "writing",
            Self::Counted => "counting",
        }
    }

    fn roles(self) -> &'static [&'static str] {
        match self {
            Self::Written => &["redirect", "api", "keygen", "keysync", "purge"],
            Self::Unnoted | Self::Counted => &[],
        }
    }

    fn settings(self) -> [String; 2] {
        let capture = format!("clicks.capture={}", self != Self::Unnoted);
        [capture, "clicks.spool_max=8GiB".to_owned()]
    }
}

/// Starts curt with room for every link and follows each link once.
fn start_cached(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
    clicks: Clicks,
) -> anyhow::Result<(Curt, CacheMemory)> {
    let folder = store.folder(&format!("curt-{}", clicks.name()));
    let home = CurtHome::new(&options.curt, &folder, &store.copy(clicks.name())?)?;
    let settings = [room_for_all(), clicks.settings().into()].concat();
    let server = home.start(clicks.roles(), &settings, cores.server)?;
    say("    following every link once");
    // The first links also fill buffers that do not grow with the cache: what a link takes shows from there on.
    let first = (store.keys.len() / 20).max(1);
    follow(cores, &server, &store.keys.prefix(first))?;
    let (few, resident_before) = (server.cache()?, server.resident_bytes()?);
    follow(cores, &server, &store.keys)?;
    let (all, resident_after) = (server.cache()?, server.resident_bytes()?);
    ensure_all_cached(all, store)?;
    let memory = CacheMemory {
        links: all.links,
        counted_bytes: all.bytes / all.links,
        resident_growth_bytes: (resident_after - resident_before)
            / (all.links - few.links).max(1.0),
        resident_before,
        resident_after,
    };
    Ok((server, memory))
}

fn room_for_all() -> Vec<String> {
    vec!["server.workers=1".to_owned(), "cache.bytes=4GiB".to_owned()]
}

fn ensure_all_cached(cache: CacheGauges, store: &PreparedStore) -> anyhow::Result<()> {
    ensure!(
        cache.links >= store.keys.len() as f64 * 0.999,
        "only {} of {} links are cached",
        cache.links,
        store.keys.len()
    );
    Ok(())
}

/// Starts curt the same way where people use it.
fn start_with_people(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
) -> anyhow::Result<Curt> {
    let database = store.copy("people")?;
    users::move_in(&database)?;
    let folder = store.folder("curt-people");
    let home = CurtHome::new(&options.curt, &folder, &database)?;
    let settings = [
        room_for_all(),
        users::settings(&folder)?,
        Clicks::Unnoted.settings().into(),
    ]
    .concat();
    let server = home.start(&[], &settings, cores.server)?;
    follow(cores, &server, &store.keys)?;
    ensure_all_cached(server.cache()?, store)?;
    Ok(server)
}

/// Follows each of `keys` once.
fn follow(cores: Cores, server: &Curt, keys: &KeySet) -> anyhow::Result<()> {
    let mut plan = Plan::new(server.http);
    plan.connections = CONNECTIONS;
    plan.limit = Limit::requests(keys.len() as u64);
    let load = RedirectLoad {
        plan,
        keys: Arc::new(keys.clone()),
        pick: Pick::InOrder,
        shape: Shape::Minimal,
        target_of: Some(target_of),
    };
    loaded(cores, &load, CURT_COUNTING).map(drop)
}

/// Starts curt with room for a few of the links, by what one link was found to take.
fn start_small(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
    link_bytes: f64,
) -> anyhow::Result<Curt> {
    let home = CurtHome::new(
        &options.curt,
        &store.folder("curt-small"),
        &store.copy("small")?,
    )?;
    let bytes = store.keys.len() as f64 * SMALL_CACHE_SHARE * link_bytes;
    let room = vec![
        "server.workers=1".to_owned(),
        format!("cache.bytes={}B", bytes.ceil().max(64.0 * 1_024.0)),
    ];
    let settings = [room, Clicks::Unnoted.settings().into()].concat();
    home.start(&[], &settings, cores.server)
}
