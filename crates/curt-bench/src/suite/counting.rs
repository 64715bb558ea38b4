//! What a click costs that is counted: curt as it is installed, with all roles and default settings, all processor time
//! until the spool is empty.

use std::thread;
use std::time::Duration;

use super::contender::{Contender, Measured, follow_each};
use super::contest::{Figures, Series, turns};
use super::curt::{ClickCounters, Curt, CurtHome};
use super::field::{LARGE_SPOOL, ROLES_WITHOUT_CLICKS};
use super::nginx::{Log, Nginx};
use super::promises;
use super::redirects::{NGINX_PLAIN, OFFERED_SHARE, add};
use super::store::PreparedStore;
use super::{Cores, SuiteOptions, say};
use crate::keys::Pick;
use crate::load::Shape;
use crate::median::grouped;

pub(super) const ZIPF: &str = "curt, default settings";
pub(super) const HOT: &str = "curt, default settings, one link";
pub(super) const UNCOUNTED: &str = "curt, default settings without the role `clicks`";

/// Most bytes that may be written per click.
pub(super) const WRITTEN_MOST: f64 = 100.0;

/// How much longer than other runs these are: at such rates clicks are written every second or two, when a window takes its
/// share of the spool, and a run must hold some of that to show what it does to redirects.
const LENGTH: f64 = 5.0 / 3.0;
/// Turns in addition while a promise is undecided.
const EXTRA: u32 = 2;

/// What was found about counting.
#[derive(Clone, Debug)]
pub(super) struct CountingResults {
    pub(super) shapes: Vec<CountingShape>,
    pub(super) written: Vec<Written>,
    pub(super) clicks_dropped: u64,
}

/// The results for one shape of request.
#[derive(Clone, Debug)]
pub(super) struct CountingShape {
    pub(super) shape: Shape,
    /// Saturated, closed loop.
    pub(super) saturated: Vec<Series>,
    /// At half of nginx's saturated rate, open loop; empty without nginx.
    pub(super) offered: Vec<Series>,
    pub(super) offered_rate: f64,
}

/// What a server wrote to disks for clicks in all its runs, its last checkpoint included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) name: &'static str,
    pub(super) clicks: u64,
    pub(super) bytes: u64,
}

/// How long a saturated run is, as a multiple of others.
fn length_of(name: &str) -> f64 {
    match name {
        ZIPF | UNCOUNTED => LENGTH,
        HOT => 1.0,
        // Only to find its rate.
        _ => 1.0 / 3.0,
    }
}

impl Written {
    pub(super) fn per_click(&self) -> f64 {
        self.bytes as f64 / self.clicks.max(1) as f64
    }
}

impl CountingShape {
    pub(super) fn series(&self, name: &str) -> Option<&Series> {
        self.saturated.iter().find(|series| series.name == name)
    }

    pub(super) fn offered_series(&self, name: &str) -> Option<&Series> {
        self.offered.iter().find(|series| series.name == name)
    }
}

/// A server, and how it stood when the measurements began.
struct Counter {
    name: &'static str,
    server: Curt,
    clicks: ClickCounters,
    captured_before: u64,
    written_before: u64,
}

pub(super) fn run(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
) -> anyhow::Result<(CountingResults, bool)> {
    say("==> counting: starting the servers");
    let zipf = Counter::start(options, cores, store, ZIPF)?;
    let hot = Counter::start(options, cores, store, HOT)?;
    let uncounted = Counter::start(options, cores, store, UNCOUNTED)?;
    let mut contenders = vec![
        Contender {
            clicks: Some(zipf.clicks.clone()),
            ..Contender::curt(ZIPF, &zipf.server, store)
        },
        Contender {
            clicks: Some(hot.clicks.clone()),
            pick: Pick::zipf(&store.keys.prefix(1)),
            keys: store.keys.prefix(1).into(),
            ..Contender::curt(HOT, &hot.server, store)
        },
        Contender::curt(UNCOUNTED, &uncounted.server, store),
    ];
    let nginx = match &options.nginx {
        Some(program) => {
            let folder = store.folder("nginx-beside-counting");
            let server = Nginx::plain(program, &folder, cores.server.as_slice(), Log::Off)?;
            contenders.push(Contender::nginx(NGINX_PLAIN, &server, store));
            Some(server)
        }
        None => None,
    };
    let runs = Runs {
        options,
        cores,
        contenders,
    };
    let mut results = CountingResults {
        shapes: Shape::BOTH.map(|shape| runs.prepare(shape)).to_vec(),
        written: Vec::new(),
        clicks_dropped: 0,
    };
    runs.take_turns(&mut results)?;
    let io_uring = zipf.server.uses_io_uring()?;
    for counter in [zipf, hot, uncounted] {
        results.clicks_dropped += counter.clicks.read()?.dropped;
        results.written.push(counter.finish()?);
    }
    if let Some(nginx) = nginx {
        nginx.stop()?;
    }
    Ok((results, io_uring))
}

impl Counter {
    /// Starts a server and, unless it serves one link only, follows every link once so that its cache is full.
    fn start(
        options: &SuiteOptions,
        cores: Cores,
        store: &PreparedStore,
        name: &'static str,
    ) -> anyhow::Result<Self> {
        let label = match name {
            ZIPF => "counting-zipf",
            HOT => "counting-hot",
            _ => "counting-none",
        };
        let folder = store.folder(&format!("curt-{label}"));
        let home = CurtHome::new(&options.curt, &folder, &store.copy(label)?)?;
        // Clicks that are never counted need more room than the usual spool has.
        let (roles, settings) = match name {
            UNCOUNTED => (&ROLES_WITHOUT_CLICKS[..], vec![LARGE_SPOOL.to_owned()]),
            _ => (&[][..], Vec::new()),
        };
        let server = home.start(roles, &settings, cores.server.as_slice())?;
        let clicks = server.clicks(&home)?;
        if name != HOT {
            say("    following every link once");
            let before = clicks.read()?;
            follow_each(cores, &server, &store.keys)?;
            if name == ZIPF {
                clicks.wait_until_counted(before, store.keys.len() as u64)?;
            }
        }
        Ok(Self {
            name,
            captured_before: clicks.read()?.captured,
            clicks,
            written_before: server.written_bytes()?,
            server,
        })
    }

    fn finish(self) -> anyhow::Result<Written> {
        let clicks = self.clicks.read()?.captured - self.captured_before;
        let bytes = self.server.stop_and_read_written_bytes()? - self.written_before;
        Ok(Written {
            name: self.name,
            clicks,
            bytes,
        })
    }
}

struct Runs<'a> {
    options: &'a SuiteOptions,
    cores: Cores,
    contenders: Vec<Contender>,
}

impl Runs<'_> {
    fn prepare(&self, shape: Shape) -> CountingShape {
        let has_nginx = self.contenders.iter().any(|one| one.name == NGINX_PLAIN);
        CountingShape {
            shape,
            saturated: self
                .contenders
                .iter()
                .map(|one| Series::new(one.name))
                .collect(),
            offered: match has_nginx {
                true => [ZIPF, NGINX_PLAIN].map(Series::new).to_vec(),
                false => Vec::new(),
            },
            offered_rate: 0.0,
        }
    }

    fn take_turns(&self, results: &mut CountingResults) -> anyhow::Result<()> {
        for turn in 0..self.options.rounds + EXTRA {
            if turn >= self.options.rounds && !promises::is_counting_undecided(results) {
                break;
            }
            for shape in &mut results.shapes {
                self.saturate(turn, shape)?;
            }
            for shape in &mut results.shapes {
                self.offer(turn, shape)?;
            }
        }
        Ok(())
    }

    fn saturate(&self, turn: u32, results: &mut CountingShape) -> anyhow::Result<()> {
        for place in turns(turn, self.contenders.len()) {
            let contender = &self.contenders[place];
            let length = length_of(contender.name);
            let measured = self.measure(contender, results.shape, turn, length, None)?;
            let last = add(&mut results.saturated, contender.name, turn, &measured);
            say_run(turn, results.shape, contender.name, &last);
        }
        Ok(())
    }

    fn offer(&self, turn: u32, results: &mut CountingShape) -> anyhow::Result<()> {
        // What nginx could do at most fixes the rate in the first turn.
        if turn == 0
            && let Some(rate) = results
                .series(NGINX_PLAIN)
                .and_then(|series| series.spread(|figures| figures.rate))
        {
            results.offered_rate = rate.median * OFFERED_SHARE;
        }
        for place in turns(turn, self.contenders.len()) {
            let contender = &self.contenders[place];
            if results.offered_series(contender.name).is_none() {
                continue;
            }
            let rate = Some(results.offered_rate);
            let measured = self.measure(contender, results.shape, turn + 100, LENGTH, rate)?;
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

    /// With a rate, a report is asked for halfway: latencies are to hold the writing of counts.
    fn measure(
        &self,
        contender: &Contender,
        shape: Shape,
        seed: u32,
        length: f64,
        rate: Option<f64>,
    ) -> anyhow::Result<Measured> {
        let length = Duration::from_secs_f64(self.options.seconds * length);
        let mut load = contender.load(length, shape, u64::from(seed) + 1);
        load.plan.rate = rate;
        match (&contender.clicks, rate) {
            (Some(clicks), Some(_)) => thread::scope(|scope| {
                let report = scope.spawn(|| {
                    thread::sleep(length / 2);
                    clicks.ask_for_report()
                });
                let measured = contender.measure(self.cores, &load)?;
                report
                    .join()
                    .map_err(|_| anyhow::anyhow!("the report panicked"))??;
                Ok(measured)
            }),
            _ => contender.measure(self.cores, &load),
        }
    }
}

fn say_run(turn: u32, shape: Shape, name: &str, figures: &Figures) {
    say(&format!(
        "    turn {:>2}  {:<8} {name:<48} {:>6.2} µs, {:>7}/s, {:.0} % counted meanwhile",
        turn + 1,
        shape.name(),
        figures.cpu_us,
        grouped(figures.rate),
        figures.counted_share * 100.0
    ));
}
