//! A server over links in memory, for measuring the redirect path alone.
//!
//! `cargo run --release -p curt-http --example hot -- 127.0.0.1:8080 1000000 1` serves a million links `k0`, `k1`, …
//! with one worker until the process is stopped.

use std::env;
use std::sync::Arc;

use axum::Router;
use curt_core::ports::LinkStore;
use curt_core::{Clock, DomainId, Key, Link, LinkId, SystemClock, Target};
use curt_http::server::Server;
use curt_http::{HttpMetrics, HttpSettings};
use curt_links::{ResolveMetrics, Resolver, ResolverSettings};
use curt_memory::MemoryLinkStore;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 10_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let mut settings = HttpSettings::default();
    if let Some(listen) = arguments.next() {
        settings.server.listen = listen.parse()?;
    }
    let links: usize = arguments.next().map_or(Ok(1_000), |count| count.parse())?;
    if let Some(workers) = arguments.next() {
        settings.server.workers = workers.parse()?;
    }

    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Arc::new(MemoryLinkStore::new());
    let resolver = Resolver::new(
        ResolverSettings {
            cache_bytes: 1 << 30,
            ..ResolverSettings::default()
        },
        store.clone(),
        Arc::default(),
        Arc::clone(&clock),
        ResolveMetrics::default(),
    );
    let ids: Vec<LinkId> = (0..links)
        .map(|number| {
            Key::parse(&format!("k{number}")).map(|key| LinkId::new(DomainId::DEFAULT, key))
        })
        .collect::<Result<_, _>>()?;
    for batch in ids.chunks(BATCH) {
        let links = batch.iter().map(link).collect::<Result<_, _>>()?;
        store.insert_if_absent(links, None).await?;
    }
    for id in &ids {
        resolver.resolve(id.as_ref()).await?;
    }

    let metrics = HttpMetrics::unregistered();
    let server = Server::bind(&settings, resolver, clock, metrics, Router::new())?;
    println!("{links} links on http://{}/", server.local_addr());
    server.run(CancellationToken::new()).await?;
    Ok(())
}

fn link(id: &LinkId) -> Result<Link, curt_core::target::TargetError> {
    let target = format!(
        "https://www.example.com/articles/2026/{}?ref=short-link",
        id.key
    );
    Ok(Link {
        id: id.clone(),
        target: Target::from_serialised(target)?,
        ..curt_testkit::sample::alias("a")
    })
}
