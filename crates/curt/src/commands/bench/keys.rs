use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use curt_keys::{KeyMetrics, KeySupply, Strategy};
use indicatif::{ProgressBar, ProgressStyle};

use super::drive::{Driven, drive};
use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::supervisor::Supervisor;
use crate::wiring::{PortErrors, Stores};

/// How long background work may take to end between two strategies.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Hand out keys by every strategy, each over a fresh database, and print them side by side
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt bench keys --strategies pool,snowflake --count 100000")]
pub(super) struct Keys {
    #[command(flatten)]
    config: ConfigArgs,

    /// Keys per strategy
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,

    /// Tasks that take keys at the same time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    takers: u64,

    /// Only these strategies
    #[arg(long, value_delimiter = ',')]
    strategies: Vec<Strategy>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Row {
    strategy: Strategy,
    driven: Driven,
}

impl Row {
    fn keys_per_second(&self) -> f64 {
        self.driven.keys as f64 / self.driven.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Keys {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let strategies = match self.strategies.as_slice() {
            [] => Strategy::ALL.to_vec(),
            chosen => chosen.to_vec(),
        };
        let progress = ProgressBar::new(strategies.len() as u64);
        progress.set_style(ProgressStyle::with_template(
            "{msg:10} {wide_bar} {pos}/{len}",
        )?);
        let mut rows = Vec::new();
        for strategy in strategies {
            progress.set_message(strategy.name());
            let driven = block_on(self.measure(strategy))?;
            rows.push(Row { strategy, driven });
            progress.inc(1);
        }
        progress.finish_and_clear();
        if self.json {
            show_json(&rows)
        } else {
            show_table(&rows);
            Ok(())
        }
    }

    async fn measure(&self, strategy: Strategy) -> anyhow::Result<Driven> {
        let folder = tempfile::tempdir().context("could not make a folder for the measurement")?;
        let mut arguments = self.config.clone();
        let data_dir = format!("data_dir={}", folder.path().display());
        arguments
            .set
            .extend([data_dir, format!("keys.strategy={strategy}")]);
        let config = Config::load(&arguments)?;
        let stores = Stores::open(&config, "curt bench", PortErrors::default())?;
        let supply =
            KeySupply::open(config.keys, stores.keys.clone(), KeyMetrics::default()).await?;
        let supervisor = Supervisor::default();
        supervisor.start("keygen", |stop| supply.clone().run_keygen(stop));
        supervisor.start("keysync", |stop| supply.clone().run_keysync(stop));
        let driven = drive(&supply, &stores.keys, self.count, self.takers).await;
        supervisor.stop(STOP_GRACE).await;
        supply.close().await?;
        stores.engines.close().await;
        driven
    }
}

fn show_table(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "strategy",
        "keys/s",
        "keys",
        "distinct",
        "times dry",
    ]);
    for row in rows {
        table.add_row([
            row.strategy.to_string(),
            format!("{:.0}", row.keys_per_second()),
            row.driven.keys.to_string(),
            row.driven.distinct.to_string(),
            row.driven.dry.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}

fn show_json(rows: &[Row]) -> anyhow::Result<()> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "strategy": row.strategy.name(),
                "keys_per_second": row.keys_per_second(),
                "keys": row.driven.keys,
                "distinct": row.driven.distinct,
                "times_dry": row.driven.dry,
            })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}
