//! How much memory a cached link takes, everything included, and how long a hit takes.
//!
//! ```sh
//! cargo run --release -p curt-links --example l1_memory -- LINKS [CACHE_BYTES]
//! ```

use std::hint::black_box;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::clock::SystemClock;
use curt_core::ports::{ChangeReply, Inserted, LinkStore, RequestToken, SpendReply};
use curt_core::{
    Clock, DomainId, ErrorKind, Link, LinkId, LinkRef, OwnerId, PortError, PortResult, Revision,
    Target, UnixMillis,
};
use curt_links::{ResolveMetrics, Resolver, ResolverSettings};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let links: u64 = arguments
        .next()
        .map_or(Ok(1_000_000), |text| text.parse())?;
    let cache_bytes: u64 = arguments
        .next()
        .map_or(Ok(links * 400), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let before = resident()?;
    let settings = ResolverSettings {
        cache_bytes,
        ..ResolverSettings::default()
    };
    let store = Arc::new(MadeUp);
    let clock = Arc::new(SystemClock);
    let resolver = Resolver::new(
        settings,
        store,
        Arc::default(),
        clock,
        ResolveMetrics::default(),
    );
    runtime.block_on(fill(&resolver, links))?;
    let (kept, weighed) = resolver.cache_size();
    let grown = resident()?.saturating_sub(before);
    let each = |bytes: u64| bytes as f64 / kept as f64;
    println!("{kept} of {links} links kept in {cache_bytes} bytes");
    println!(
        "{:.1} bytes of memory per link, {:.1} by our count",
        each(grown),
        each(weighed)
    );
    for distinct in [100, 10_000, 1_000_000] {
        time_hits(&resolver, distinct, links);
    }
    time_zipf(&resolver, links);
    Ok(())
}

async fn fill(resolver: &Resolver, links: u64) -> PortResult<()> {
    for n in 0..links {
        resolver.resolve(named(&key(n))).await?;
    }
    Ok(())
}

fn time_hits(resolver: &Resolver, distinct: u64, links: u64) {
    const LOOKUPS: usize = 2_000_000;
    let now = SystemClock.now();
    let keys: Vec<String> = (0..distinct)
        .map(|n| key(links - 1 - n * 7_919 % links))
        .collect();
    let mut hits = 0_u64;
    let started = cpu_nanos();
    for key in keys.iter().cycle().take(LOOKUPS) {
        if let Some(hit) = black_box(resolver.cached(named(key), now)) {
            hits += u64::from(!hit.location_bytes().is_empty());
        }
    }
    let nanos = (cpu_nanos() - started) / LOOKUPS as f64;
    println!("{nanos:.0} ns per look-up over {distinct} keys, {hits} hits of {LOOKUPS}");
}

/// Look-ups by Zipf's distribution with exponent 1, as in the benchmark of redirects.
fn time_zipf(resolver: &Resolver, links: u64) {
    const LOOKUPS: usize = 2_000_000;
    let now = SystemClock.now();
    let mut state = 7_u64;
    let keys: Vec<String> = (0..LOOKUPS)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 11) as f64 / (1_u64 << 53) as f64;
            // The inverse of the distribution, near enough: ranks are exponential in the share.
            let rank = (links as f64).powf(at) as u64;
            key(rank.wrapping_mul(7_919) % links)
        })
        .collect();
    let mut hits = 0_u64;
    let started = cpu_nanos();
    for key in &keys {
        if let Some(hit) = black_box(resolver.cached(named(key), now)) {
            hits += u64::from(!hit.location_bytes().is_empty());
        }
    }
    let nanos = (cpu_nanos() - started) / LOOKUPS as f64;
    println!("{nanos:.0} ns per look-up by Zipf(1.0), {hits} hits of {LOOKUPS}");
}

fn key(n: u64) -> String {
    format!("{:07}", n)
}

fn named(key: &str) -> LinkRef<'_> {
    LinkRef {
        domain: DomainId::DEFAULT,
        key,
    }
}

/// Time on a processor: other programs on the machine do not count.
fn cpu_nanos() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = schedstat.split_whitespace().next().unwrap_or_default();
    nanos.parse().unwrap_or_default()
}

fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib: u64 = line
        .and_then(|line| line.split_whitespace().nth(1))
        .ok_or("no VmRSS")?
        .parse()?;
    Ok(kib * 1_024)
}

/// Knows every key; each leads to a target of sixty bytes.
struct MadeUp;

fn not_here<T>() -> PortResult<T> {
    Err(PortError::new(
        ErrorKind::Invalid,
        "made up",
        "write",
        "this store only reads",
    ))
}

#[async_trait]
impl LinkStore for MadeUp {
    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        let target = format!("https://example.com/{:0>40}", id.key.as_str());
        let Ok(target) = Target::from_serialised(target) else {
            return not_here();
        };
        Ok(Some(Link {
            id: id.clone(),
            target,
            expires_at: Some(UnixMillis::MAX),
            ..curt_testkit::sample::link("a")
        }))
    }

    async fn insert_if_absent(
        &self,
        _: Vec<Link>,
        _: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        not_here()
    }

    async fn update_at(&self, _: Link, _: Revision) -> PortResult<ChangeReply> {
        not_here()
    }

    async fn hand_over_at(
        &self,
        _: &LinkId,
        _: Revision,
        _: OwnerId,
        _: UnixMillis,
    ) -> PortResult<ChangeReply> {
        not_here()
    }

    async fn delete_at(&self, _: &LinkId, _: Revision, _: UnixMillis) -> PortResult<ChangeReply> {
        not_here()
    }

    async fn spend_click(&self, _: &LinkId, _: Revision) -> PortResult<SpendReply> {
        not_here()
    }

    async fn clicks_spent(&self, _: &LinkId) -> PortResult<u64> {
        not_here()
    }

    async fn ping(&self) -> PortResult<()> {
        not_here()
    }
}
