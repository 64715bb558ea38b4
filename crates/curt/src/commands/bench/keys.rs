use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use curt_adapters::wrap::PortErrors;
use curt_core::ports::{ClaimReply, InsertRequest, LinkStore};
use curt_core::{
    Clock, DomainId, Key, KeyOrigin, Link, LinkId, LinkState, OwnerId, RedirectStatus, Revision,
    SystemClock, Target, Visibility,
};
use curt_keys::{KeyHint, KeyMetrics, KeySupply, Strategy};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use prometheus_client::registry::Registry;

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::supervisor::Supervisor;
use crate::wiring::Stores;

/// Hand out keys by every strategy, each over a fresh database, and print them side by side
#[derive(Args, Debug)]
pub(super) struct Keys {
    #[command(flatten)]
    config: ConfigArgs,

    /// Keys per strategy
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,

    /// Only these strategies
    #[arg(long, value_delimiter = ',')]
    strategies: Vec<Strategy>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Measured {
    strategy: Strategy,
    example: String,
    elapsed: Duration,
    latency: Histogram<u64>,
    distinct: usize,
    fallbacks: u64,
}

impl Keys {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let strategies = if self.strategies.is_empty() {
            Strategy::ALL.to_vec()
        } else {
            self.strategies.clone()
        };
        let progress = ProgressBar::new(self.count * strategies.len() as u64);
        progress.set_style(ProgressStyle::with_template(
            "{msg:10} {wide_bar} {pos}/{len} {eta}",
        )?);
        let mut rows = Vec::new();
        for strategy in strategies {
            progress.set_message(strategy.name());
            rows.push(block_on(measure(
                &self.config,
                strategy,
                self.count,
                &progress,
            ))?);
        }
        progress.finish_and_clear();
        if self.json {
            show_json(&rows, self.count)
        } else {
            show_table(&rows, self.count)
        }
    }
}

async fn measure(
    arguments: &ConfigArgs,
    strategy: Strategy,
    count: u64,
    progress: &ProgressBar,
) -> anyhow::Result<Measured> {
    let folder = tempfile::tempdir().context("could not make a folder for the measurement")?;
    let mut arguments = arguments.clone();
    arguments
        .set
        .push(format!("data_dir={}", folder.path().display()));
    arguments.set.push(format!("keys.strategy={strategy}"));
    let config = Config::load(&arguments)?;
    let stores = Stores::open(&config, PortErrors::default())?;
    let metrics = KeyMetrics::register(&mut Registry::default());
    let supply = KeySupply::open(config.keys.clone(), stores.keys.clone(), metrics).await?;
    let supervisor = Supervisor::default();
    supervisor.start("keygen", |stop| supply.clone().run_keygen(stop));
    supervisor.start("keysync", |stop| supply.clone().run_keysync(stop));
    warm_up(&supply, &stores.links).await?;
    let mut measured = Measured {
        strategy,
        example: String::new(),
        elapsed: Duration::ZERO,
        latency: Histogram::new(3)?,
        distinct: 0,
        fallbacks: 0,
    };
    draw(&supply, &stores.links, count, &mut measured, progress).await?;
    supervisor.stop(Duration::from_secs(10)).await;
    supply.close().await?;
    stores.close().await;
    Ok(measured)
}

/// Waits until the line has filled itself, so that the figure is that of a running server.
async fn warm_up(supply: &KeySupply, links: &Arc<dyn LinkStore>) -> anyhow::Result<()> {
    let filled = async {
        loop {
            let accounts = supply.accounts().await?;
            let seeded = links.counts().await?.seeded;
            let moving = accounts.minted == 0 && !supply.claims_rows();
            if moving || accounts.buffered > 0 || seeded > 0 {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // A strategy without a line has nothing to fill; one whose line stands still is measured as it is.
    match tokio::time::timeout(Duration::from_secs(10), filled).await {
        Ok(done) => done,
        Err(_) => Ok(()),
    }
}

async fn draw(
    supply: &KeySupply,
    links: &Arc<dyn LinkStore>,
    count: u64,
    measured: &mut Measured,
    progress: &ProgressBar,
) -> anyhow::Result<()> {
    let mut seen: HashSet<Key> = HashSet::new();
    let begun = Instant::now();
    for number in 0..count {
        let target = Target::from_serialised(format!("https://example.com/{number}"))?;
        let asked = Instant::now();
        let (key, origin) = if supply.claims_rows() {
            (claim(links, target).await?, KeyOrigin::Claim)
        } else {
            let hint = KeyHint {
                target: &target,
                owner: OwnerId(1),
                attempt: 0,
            };
            let supplied = supply.take(&hint).await;
            (supplied.key, supplied.origin)
        };
        let nanos = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        measured.latency.saturating_record(nanos);
        measured.fallbacks += u64::from(origin == KeyOrigin::Random);
        if number == 0 {
            measured.example = key.to_string();
        }
        seen.insert(key);
        if number % 1_024 == 0 {
            progress.inc(1_024.min(count - number));
            // Others of this single-threaded runtime, the refillers among them, get their turn as in a server.
            tokio::task::yield_now().await;
        }
    }
    measured.elapsed = begun.elapsed();
    measured.distinct = seen.len();
    Ok(())
}

/// With the strategy `claim` a key and its link are one step.
async fn claim(links: &Arc<dyn LinkStore>, target: Target) -> anyhow::Result<Key> {
    let now = SystemClock.now();
    let link = Link {
        id: LinkId::new(DomainId::DEFAULT, Key::parse("unclaimed")?),
        target,
        owner: OwnerId(1),
        state: LinkState::Active,
        revision: Revision::FIRST,
        origin: KeyOrigin::Claim,
        created_at: now,
        updated_at: now,
        expires_at: None,
        valid_since: None,
        max_clicks: None,
        visibility: Visibility::Public,
        password_hash: None,
        status: RedirectStatus::Found,
        forward_query: false,
        title: None,
        tags: Vec::new(),
    };
    loop {
        let request = InsertRequest {
            links: vec![link.clone()],
            once: None,
            now,
        };
        if let ClaimReply::Claimed(claimed) = links.claim(request).await?
            && let Some(link) = claimed.into_iter().next()
        {
            return Ok(link.id.key);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn per_second(row: &Measured, count: u64) -> f64 {
    count as f64 / row.elapsed.as_secs_f64().max(1e-9)
}

fn show_table(rows: &[Measured], count: u64) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "strategy",
        "example",
        "keys/s",
        "p50 µs",
        "p99 µs",
        "distinct",
        "random instead",
    ]);
    for row in rows {
        table.add_row([
            row.strategy.to_string(),
            row.example.clone(),
            format!("{:.0}", per_second(row, count)),
            format!("{:.2}", row.latency.value_at_quantile(0.50) as f64 / 1e3),
            format!("{:.2}", row.latency.value_at_quantile(0.99) as f64 / 1e3),
            format!("{} of {count}", row.distinct),
            row.fallbacks.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}

fn show_json(rows: &[Measured], count: u64) -> anyhow::Result<()> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "strategy": row.strategy.name(), "example": row.example, "keys": count,
                "keys_per_second": per_second(row, count),
                "p50_us": row.latency.value_at_quantile(0.50) as f64 / 1e3,
                "p99_us": row.latency.value_at_quantile(0.99) as f64 / 1e3,
                "distinct": row.distinct, "random_instead": row.fallbacks,
            })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}
