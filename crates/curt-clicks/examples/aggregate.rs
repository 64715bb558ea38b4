//! What aggregating a click takes, with its window's rollups and blocks made: decoding and storing are not in it.
//!
//! ```sh
//! cargo run --release -p curt-clicks --example aggregate -- CLICKS [COUNTRIES.mmdb]
//! ```
//! The clicks are those of one day. Links and agents follow Zipf's law:
//! the n-th most popular is asked for in proportion to 1/n.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use curt_clicks::aggregate::{Aggregate, AggregateSettings, SaltWanted};
use curt_clicks::classify::{AddressList, ReferenceData};
use curt_clicks::record::{ClickRecord, Method, Outcome, UtmText};
use curt_core::ports::{StreamId, StreamPartition};
use curt_core::{Attribution, DomainId, OwnerId, UnixMillis};

/// The server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LINKS: u32 = 1_000_000;
const AGENTS: u32 = 5_000;
const REFERRERS: u32 = 2_000;
const LANGUAGES: [&str; 5] = ["en-US,en;q=0.9", "de", "fr-FR,fr;q=0.8", "pt-BR", "ja"];
/// As much as the default settings allow.
const WINDOW_BYTES_MAX: usize = 64 << 20;
const DAY_MILLIS: u64 = 24 * 3_600_000;
const START: UnixMillis = UnixMillis(1_800_000_000_000);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let clicks: u64 = arguments
        .next()
        .map_or(Ok(10_000_000), |text| text.parse())?;
    let countries = match arguments.next() {
        Some(path) => AddressList::open(Path::new(&path))?,
        None => AddressList::none(),
    };
    let reference = Arc::new(ReferenceData {
        countries: Arc::new(countries),
        ..ReferenceData::default()
    });
    let traffic = Traffic::new(clicks);
    for (what, keeps_clicks, bytes_max) in [
        ("rollups alone, windows of 2 MiB", false, 2 << 20),
        ("rollups alone", false, WINDOW_BYTES_MAX),
        ("rollups and clicks", true, WINDOW_BYTES_MAX),
    ] {
        let settings = AggregateSettings {
            keeps_clicks,
            ..AggregateSettings::default()
        };
        let mut aggregate = Aggregate::new(settings, Arc::clone(&reference));
        let drawing = run(clicks, &traffic, |click| click.key.len());
        let (mut rollups, mut windows, mut most_bytes) = (0, 0, 0);
        let (mut number, mut block_bytes) = (0, 0);
        let folding = run(clicks, &traffic, |click| {
            add(&mut aggregate, click);
            number += 1;
            if aggregate.memory_bytes() >= bytes_max || number == clicks {
                most_bytes = most_bytes.max(aggregate.memory_bytes());
                let partition = StreamPartition {
                    stream: StreamId(1),
                    number: 0,
                };
                let window = aggregate.take(partition, 0);
                rollups += window
                    .days
                    .iter()
                    .map(|day| day.rollups.len())
                    .sum::<usize>();
                block_bytes += window
                    .blocks
                    .iter()
                    .map(|block| block.bytes.len())
                    .sum::<usize>();
                windows += 1;
            }
            rollups
        });
        let seconds = folding - drawing;
        println!(
            "{what}: {:.3} µs per click, {windows} windows with {rollups} rollups and {} bytes of clicks each, at most {} KiB; the process has {} so far",
            seconds * 1e6 / clicks as f64,
            block_bytes as u64 / clicks,
            most_bytes / 1_024,
            most_resident(),
        );
    }
    Ok(())
}

fn add(aggregate: &mut Aggregate, click: &ClickRecord<'_>) {
    while let Err(SaltWanted(day)) = aggregate.add(click, click.at) {
        aggregate.salts().give(day, &[7; 32]);
    }
}

/// Seconds on a processor that the traffic takes; making it up is the same each time.
fn run(clicks: u64, traffic: &Traffic, mut each: impl FnMut(&ClickRecord<'_>) -> usize) -> f64 {
    let mut random = Random(42);
    let started = cpu_seconds();
    for number in 0..clicks {
        std::hint::black_box(each(&traffic.click(number, &mut random)));
    }
    cpu_seconds() - started
}

/// Time on a processor: other programs on the machine do not count.
fn cpu_seconds() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = schedstat.split_whitespace().next().unwrap_or_default();
    nanos.parse().unwrap_or(0.0) / 1e9
}

/// The most memory that the process has ever had, as the kernel says it.
fn most_resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    most.unwrap_or("unknown").trim().to_owned()
}

struct Traffic {
    clicks: u64,
    keys: Vec<String>,
    agents: Vec<String>,
    referrers: Vec<String>,
}

impl Traffic {
    fn new(clicks: u64) -> Self {
        let agent = |n: u32| {
            let (major, minor) = (80 + n % 70, n / 70);
            format!(
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.{minor}.0 Safari/537.36"
            )
        };
        let referrer = |n: u32| match n {
            0 => String::new(),
            n => format!("https://site-{}.example/page/{n}", n % 500),
        };
        Self {
            clicks,
            keys: (0..LINKS).map(|n| format!("{n:07}")).collect(),
            agents: (0..AGENTS).map(agent).collect(),
            referrers: (0..REFERRERS).map(referrer).collect(),
        }
    }

    fn click(&self, number: u64, random: &mut Random) -> ClickRecord<'_> {
        let passed = (number * DAY_MILLIS / self.clicks) as i64;
        ClickRecord {
            at: UnixMillis(START.0 + passed),
            domain: DomainId::DEFAULT,
            key: pick(&self.keys, random).as_bytes(),
            generation: 1,
            outcome: Outcome::Redirected,
            method: Method::Get,
            prefetch: false,
            address: IpAddr::V4(Ipv4Addr::from_bits(random.next() as u32)),
            agent: pick(&self.agents, random).as_bytes(),
            referrer: pick(&self.referrers, random).as_bytes(),
            language: LANGUAGES[(random.next() % LANGUAGES.len() as u64) as usize].as_bytes(),
            utm: UtmText::default(),
            attribution: Attribution {
                owner: OwnerId(1 << 60),
                ..Attribution::default()
            },
        }
    }
}

/// The item whose rank is drawn by Zipf's law: the logarithm of the rank is uniform.
fn pick<'a, T>(items: &'a [T], random: &mut Random) -> &'a T {
    let uniform = random.next() as f64 / u64::MAX as f64;
    let rank = (items.len() as f64).powf(uniform) as usize;
    &items[(rank - 1).min(items.len() - 1)]
}

/// SplitMix64: the same traffic on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
