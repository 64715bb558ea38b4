//! What writing a click down costs the redirect path.
//!
//! ```sh
//! cargo run --release -p curt-spool --example capture -- [CLICKS] [FOLDER]
//! ```
//! Prints wall time and CPU time of the writing thread per click, alone and with a reader beside it.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use curt_clicks::capture::Capture;
use curt_clicks::record::{ClickRecord, Method, Outcome, UtmText};
use curt_core::ports::ClickSource;
use curt_core::{Attribution, Clock, DomainId, OwnerId, PortResult, SystemClock, UnixMillis};
use curt_spool::{Spool, SpoolMetrics, SpoolSettings};

type Outcomes<T> = Result<T, Box<dyn Error>>;

/// Clicks that come together, and the time between: about what a core can redirect, so that the disk keeps up.
const BURST: u32 = 200;
const PAUSE: Duration = Duration::from_millis(1);

const AGENT: &[u8] =
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36";

fn main() -> Outcomes<()> {
    let mut arguments = std::env::args().skip(1);
    let clicks: u32 = arguments
        .next()
        .map_or(Ok(1_000_000), |text| text.parse())?;
    let scratch = tempfile::tempdir()?;
    let folder = arguments
        .next()
        .map_or(scratch.path().to_owned(), Into::into);
    for (name, with_reader) in [("alone", false), ("with a reader", true)] {
        for _ in 0..3 {
            let round = tempfile::tempdir_in(&folder)?;
            measure(name, with_reader, round.path(), clicks)?;
        }
    }
    Ok(())
}

fn measure(name: &str, with_reader: bool, folder: &Path, clicks: u32) -> Outcomes<()> {
    let settings = SpoolSettings {
        total_bytes: 1 << 30,
        ..SpoolSettings::default()
    };
    let now = SystemClock.now();
    let spool = Arc::new(Spool::open(
        folder,
        &settings,
        now,
        &SpoolMetrics::default(),
    )?);
    let capture = Capture::new(spool.take_writer(0)?);
    let done = Arc::new(AtomicBool::new(false));
    let reader = with_reader.then(|| {
        let (spool, done) = (Arc::clone(&spool), Arc::clone(&done));
        std::thread::spawn(move || read_until(&spool, &done))
    });
    let (wall, cpu) = std::thread::spawn(move || write(capture, clicks, now))
        .join()
        .map_err(|_| "the writer panicked")?;
    done.store(true, Ordering::Release);
    let read = match reader {
        Some(reader) => reader.join().map_err(|_| "the reader panicked")??,
        None => 0,
    };
    let counts = spool.counts();
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(clicks);
    println!(
        "{name}: {:.0} ns per click, {:.0} ns of CPU; {} written, {} dropped, {read} read",
        each(wall),
        each(cpu),
        counts.captured,
        counts.dropped()
    );
    Ok(())
}

/// Time of the bursts, by the wall and by the CPU, without the pauses between them.
fn write(mut capture: Capture, clicks: u32, now: UnixMillis) -> (Duration, Duration) {
    let mut spent = (Duration::ZERO, Duration::ZERO);
    for burst in 0..clicks / BURST {
        let (started, cpu) = (Instant::now(), thread_cpu());
        for number in 0..BURST {
            record(&mut capture, burst * BURST + number, now);
        }
        spent.0 += started.elapsed();
        spent.1 += thread_cpu() - cpu;
        std::thread::sleep(PAUSE);
    }
    spent
}

fn record(capture: &mut Capture, number: u32, now: UnixMillis) {
    let key = [b'a' + (number % 26) as u8; 7];
    capture.record(&ClickRecord {
        at: now.plus(Duration::from_micros(number.into())),
        domain: DomainId::DEFAULT,
        key: &key,
        generation: 1,
        outcome: Outcome::Redirected,
        method: Method::Get,
        prefetch: false,
        address: IpAddr::V4(Ipv4Addr::from(number)),
        agent: AGENT,
        referrer: b"https://www.example.com/",
        language: b"en-US,en;q=0.9",
        utm: UtmText::default(),
        attribution: Attribution {
            owner: OwnerId(1 << 60),
            ..Attribution::default()
        },
    });
}

fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Reads and commits until the writer is done and nothing is left.
fn read_until(spool: &Spool, done: &AtomicBool) -> PortResult<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else { return Ok(0) };
    runtime.block_on(async {
        let (mut position, mut read) = (0, 0);
        loop {
            let was_done = done.load(Ordering::Acquire);
            let records = spool.poll(0, position, 10_000, Duration::ZERO).await?;
            match records.last() {
                Some(last) => position = last.offset + 1,
                None if was_done => return Ok(read),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
            read += records.len() as u64;
            spool.commit(0, position).await?;
        }
    })
}
