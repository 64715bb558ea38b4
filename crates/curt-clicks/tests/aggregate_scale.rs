//! A day of clicks: decoded and aggregated in bounded memory, at a rate that one core can promise.
//!
//! The only test of this binary, because it looks at the memory of the process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use curt_clicks::aggregate::{Aggregate, AggregateSettings, SaltWanted};
use curt_clicks::classify::ReferenceData;
use curt_clicks::record::{self, ClickRecord, Method, Outcome, UtmText};
use curt_core::ports::{StreamId, StreamPartition};
use curt_core::{Attribution, DomainId, OwnerId, UnixMillis};
use curt_testkit::length::{is_full, length};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::time::{ClockId, clock_gettime};

/// The server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const START: UnixMillis = UnixMillis(1_800_000_000_000);
const DAY_MILLIS: u64 = 24 * 3_600_000;
const LINKS: u64 = 100_000;
const AGENTS: u64 = 5_000;
const REFERRERS: u64 = 2_000;
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// Beyond what the window may hold: the tables' free room, and what is given away while the next window begins.
const MEMORY_BEYOND: u64 = 64 << 20;
const RATE_MIN: f64 = 1_000_000.0;

#[test]
fn a_day_of_clicks_is_aggregated_in_bounded_memory_and_a_million_per_cpu_second() {
    let clicks: u64 = length(100_000, 100_000_000);
    let records = records();
    let settings = AggregateSettings::default();
    let mut aggregate = Aggregate::new(settings, Arc::new(ReferenceData::default()));
    // What is remembered about agents and referrers is bounded, and is not what is asked here.
    for bytes in &records {
        add(&mut aggregate, bytes);
        if aggregate.memory_bytes() >= WINDOW_BYTES_MAX {
            take(&mut aggregate);
        }
    }
    take(&mut aggregate);
    let before = resident_bytes();
    let (mut counted, mut windows, mut peak) = (0, 0, before);
    let began = cpu_time();
    for bytes in records.iter().cycle().take(clicks as usize) {
        add(&mut aggregate, bytes);
        if aggregate.memory_bytes() >= WINDOW_BYTES_MAX {
            counted += take(&mut aggregate);
            windows += 1;
            if windows % 10 == 0 {
                peak = peak.max(resident_bytes());
            }
        }
    }
    counted += take(&mut aggregate);
    let rate = clicks as f64 / (cpu_time() - began).as_secs_f64();
    println!(
        "aggregate: {clicks} clicks in {windows} windows, {rate:.0} per CPU-second, {} MiB more at the peak",
        (peak - before) >> 20
    );
    assert_eq!(counted, clicks);
    let allowed = WINDOW_BYTES_MAX as u64 + MEMORY_BEYOND;
    assert!(peak - before <= allowed, "{} bytes more", peak - before);
    // An unoptimised build says nothing about it.
    if is_full() {
        assert!(rate >= RATE_MIN, "{rate:.0} clicks per CPU-second");
    }
}

/// Ends the window; says how many clicks it kept.
fn take(aggregate: &mut Aggregate) -> u64 {
    let partition = StreamPartition {
        stream: StreamId(1),
        number: 0,
    };
    let window = aggregate.take(partition, 0);
    window
        .blocks
        .iter()
        .map(|block| u64::from(block.clicks))
        .sum()
}

fn add(aggregate: &mut Aggregate, bytes: &[u8]) {
    let click = record::decode(bytes).unwrap();
    while let Err(SaltWanted(day)) = aggregate.add(&click, START.plus(Duration::from_secs(86_400)))
    {
        aggregate.salts().give(day, &[7; 32]);
    }
}

/// Links and agents follow Zipf's law, about: the n-th most popular is asked for in proportion to 1/n.
fn records() -> Vec<Box<[u8]>> {
    let mut random = StdRng::seed_from_u64(1);
    let mut zipf = move |of: u64| {
        let exponent: f64 = random.random_range(0.0..1.0);
        ((of as f64).powf(exponent) as u64).clamp(1, of)
    };
    let mut bytes = Vec::new();
    // They come again and again.
    let different = length(30_000, 200_000);
    (0..different)
        .map(|number| {
            let key = format!("k{:06}", zipf(LINKS));
            let agent = format!(
                "Mozilla/5.0 (X11; Linux x86_64; rv:{0}.0) Gecko/20100101 Firefox/{0}.0",
                zipf(AGENTS)
            );
            let referrer = format!("https://site-{}.example/page", zipf(REFERRERS));
            let millis = number * DAY_MILLIS / different;
            let click = ClickRecord {
                at: START.plus(Duration::from_millis(millis)),
                domain: DomainId::DEFAULT,
                key: key.as_bytes(),
                generation: 1,
                outcome: Outcome::Redirected,
                method: Method::Get,
                prefetch: false,
                address: Ipv4Addr::from_bits(0x0a00_0000 + zipf(1 << 20) as u32).into(),
                agent: agent.as_bytes(),
                referrer: referrer.as_bytes(),
                language: b"de-DE,de;q=0.9,en;q=0.8",
                utm: UtmText::default(),
                attribution: Attribution {
                    owner: OwnerId(1 + zipf(100)),
                    ..Attribution::default()
                },
            };
            bytes.clear();
            record::encode(&click, &mut bytes);
            bytes.as_slice().into()
        })
        .collect()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib << 10
}
