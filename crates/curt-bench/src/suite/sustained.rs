//! A steady stream of clicks for minutes: whether counting keeps up with capture, with the default spool and settings, on
//! two cores that the generator shares.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::curt::{ClickCounters, ClickReading, CurtHome};
use super::store::PreparedStore;
use super::verdict::{Bound, Verdict};
use super::{say, target_of};
use crate::load::{Limit, PipelineReport, Plan, RedirectLoad, Shape, pipeline};
use crate::median::{Spread, grouped};
use crate::pin;

/// Cores of server and generator together.
const CORES: usize = 2;
const CONNECTIONS: usize = 64;
const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// The share of the rate that has to be reached.
const RATE_LEAST: f64 = 0.99;
/// How old a click may be that is not read from the spool: less than half of what the default spool holds.
const LAG_SECONDS_MOST: f64 = 10.0;
/// Until everything is counted after the last answer.
const DRAIN_SECONDS_MOST: f64 = 30.0;

/// What to stream, and for how long.
#[derive(Clone, Debug)]
pub struct SustainedOptions {
    /// The server's executable.
    pub curt: PathBuf,
    /// A folder for databases, removed afterwards.
    pub work: PathBuf,
    pub links: u32,
    /// Clicks per second.
    pub rate: f64,
    pub duration: Duration,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct SustainedReport {
    wanted_rate: f64,
    load: PipelineReport,
    cores: usize,
    clicks: ClickReading,
    most: Most,
    drained_after: Duration,
    /// Of the server, from the first request until the spool was empty.
    cpu_us: f64,
    written_per_click: f64,
}

/// Streams redirects of the mix and waits until all clicks are counted.
pub fn sustained(options: &SustainedOptions) -> anyhow::Result<SustainedReport> {
    let work = super::work_folder(&options.work)?;
    say("==> sustained: making the links");
    let store = PreparedStore::build(work.path(), options.links)?;
    let home = CurtHome::new(&options.curt, &store.folder("curt"), &store.copy("links")?)?;
    let mut cores = pin::allowed_cores().context("cannot ask which cores may be used")?;
    cores.truncate(CORES);
    let server = home.start(&[], &[], &cores)?;
    let mut plan = Plan::new(server.http);
    plan.connections = CONNECTIONS;
    plan.own_addresses = true;
    plan.rate = Some(options.rate);
    plan.limit = Limit {
        duration: options.duration,
        requests: None,
    };
    let load = RedirectLoad {
        plan,
        keys: store.keys.clone(),
        pick: store.popularity.clone(),
        shape: Shape::Mixed,
        target_of: Some(target_of),
    };
    let clicks = server.clicks(&home)?;
    let (spent, written) = (server.process().reading()?, server.written_bytes()?);
    let streamed = stream(&load, &clicks, &cores)?;
    let ended = Instant::now();
    clicks.wait_until_counted(ClickReading::default(), streamed.load.answered)?;
    let drained_after = ended.elapsed();
    let spent = server.process().reading()?.since(&spent).all;
    let reading = clicks.read()?;
    let written = server.stop_and_read_written_bytes()? - written;
    let answered = streamed.load.answered.max(1) as f64;
    Ok(SustainedReport {
        wanted_rate: options.rate,
        cores: cores.len(),
        clicks: reading,
        most: streamed.most,
        drained_after,
        cpu_us: spent as f64 / 1e3 / answered,
        written_per_click: written as f64 / answered,
        load: streamed.load,
    })
}

struct Streamed {
    load: PipelineReport,
    most: Most,
}

/// The most that was seen of each while the stream ran.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    /// Age of the oldest click that was not read from the spool.
    lag_seconds: f64,
    /// Clicks that were captured and not in the database.
    uncounted: u64,
    spool_bytes: f64,
}

/// Ends the watch also when the load fails.
struct EndsWatch<'a>(&'a AtomicBool);

impl Drop for EndsWatch<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the load on `cores` and looks at the server's counters meanwhile.
fn stream(
    load: &RedirectLoad,
    clicks: &ClickCounters,
    cores: &[usize],
) -> anyhow::Result<Streamed> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| watch(clicks, &is_over));
        let ends_watch = EndsWatch(&is_over);
        let loaded = pin::on_cores(cores, || pipeline(load));
        drop(ends_watch);
        let most = watch
            .join()
            .map_err(|_| anyhow::anyhow!("the watch panicked"))??;
        Ok(Streamed {
            load: loaded.context("cannot bind the generator to its cores")??,
            most,
        })
    })
}

/// Looks at the counters until the end, and now and then says how it goes.
fn watch(clicks: &ClickCounters, is_over: &AtomicBool) -> anyhow::Result<Most> {
    let began = Instant::now();
    let mut most = Most::default();
    let mut said = 0;
    while !is_over.load(Ordering::Relaxed) {
        let now = clicks.read()?;
        most = Most {
            lag_seconds: most.lag_seconds.max(now.lag_seconds),
            uncounted: most.uncounted.max(now.uncounted()),
            spool_bytes: most.spool_bytes.max(now.spool_bytes),
        };
        let seconds = began.elapsed().as_secs();
        if seconds >= said + 10 {
            said = seconds;
            say(&format!(
                "    {seconds:>4} s  {} clicks captured, {} not in the database, {} s behind, {} dropped",
                grouped(now.captured as f64),
                grouped(now.uncounted() as f64),
                now.lag_seconds,
                grouped(now.dropped as f64)
            ));
        }
        thread::sleep(LOOKS_EVERY);
    }
    Ok(most)
}

impl SustainedReport {
    /// Whether the stream was kept up with.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        let exactly = |what: &str, value, bound, unit| {
            Verdict::new(what, Spread::exactly(value), bound, unit)
        };
        let counted = self.clicks.counted as f64;
        vec![
            exactly(
                "redirects against the wanted rate",
                self.load.rate() / self.wanted_rate,
                Bound::AtLeast(RATE_LEAST),
                "×",
            ),
            exactly(
                "redirects that failed",
                self.load.failed as f64,
                Bound::AtMost(0.0),
                "",
            ),
            exactly(
                "clicks dropped",
                self.clicks.dropped as f64,
                Bound::AtMost(0.0),
                "",
            ),
            exactly(
                "clicks counted and redirects answered, difference",
                (counted - self.load.answered as f64).abs(),
                Bound::AtMost(0.0),
                "",
            ),
            exactly(
                "age of the oldest click that was not read from the spool, at most",
                self.most.lag_seconds,
                Bound::AtMost(LAG_SECONDS_MOST),
                " s",
            ),
            exactly(
                "time until all were counted after the last",
                self.drained_after.as_secs_f64(),
                Bound::AtMost(DRAIN_SECONDS_MOST),
                " s",
            ),
        ]
    }
}

impl fmt::Display for SustainedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "redirects  {} in {:.1} s = {}/s, {}/s wanted, {} cores shared with the generator",
            grouped(self.load.answered as f64),
            self.load.elapsed.as_secs_f64(),
            grouped(self.load.rate()),
            grouped(self.wanted_rate),
            self.cores
        )?;
        writeln!(
            f,
            "clicks     {} counted, {} dropped, at most {} s behind and {} not in the database ({:.1} MiB of spool), all \
             counted after {:.1} s",
            grouped(self.clicks.counted as f64),
            grouped(self.clicks.dropped as f64),
            self.most.lag_seconds,
            grouped(self.most.uncounted as f64),
            self.most.spool_bytes / 1_048_576.0,
            self.drained_after.as_secs_f64()
        )?;
        writeln!(
            f,
            "cost       {:.2} µs of CPU and {:.1} B written per redirect and click; the generator took {:.2} µs",
            self.cpu_us,
            self.written_per_click,
            self.load.cpu.as_secs_f64() * 1e6 / self.load.answered.max(1) as f64
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::verdict::Standing;

    #[test]
    fn each_way_of_not_keeping_up_is_a_failure() {
        let good = SustainedReport {
            wanted_rate: 1_000.0,
            load: PipelineReport {
                answered: 10_000,
                failed: 0,
                elapsed: Duration::from_secs(10),
                cpu: Duration::from_secs(1),
            },
            cores: 2,
            clicks: ClickReading {
                captured: 10_000,
                counted: 10_000,
                ..ClickReading::default()
            },
            most: Most {
                lag_seconds: 1.0,
                uncounted: 6_000,
                spool_bytes: 1e6,
            },
            drained_after: Duration::from_secs(6),
            cpu_us: 8.0,
            written_per_click: 90.0,
        };
        let failed = |report: &SustainedReport| {
            let verdicts = report.verdicts();
            let all = verdicts.iter().enumerate();
            let these = all.filter(|(_, one)| one.standing() == Standing::Fail);
            these.map(|(place, _)| place).collect::<Vec<_>>()
        };
        assert!(failed(&good).is_empty(), "{good}");
        let mut slow = good.clone();
        slow.load.elapsed = Duration::from_secs(11);
        assert_eq!(failed(&slow), [0]);
        let mut dropping = good.clone();
        dropping.clicks.dropped = 1;
        dropping.clicks.counted -= 1;
        assert_eq!(failed(&dropping), [2, 3]);
        let mut lagging = good;
        lagging.most.lag_seconds = 11.0;
        lagging.drained_after = Duration::from_secs(31);
        assert_eq!(failed(&lagging), [4, 5]);
    }
}
