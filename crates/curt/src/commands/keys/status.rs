use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::Args;
use curt_adapters::sqlite::Access;
use curt_keys::{KeyMetrics, KeyStatus, KeySupply, Strategy};

use super::show::{self, Shown};
use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::KeyStores;

/// Print where the keys are: keys database, pool and processes, shard by shard, with the sums and what to look at
#[derive(Args, Debug)]
pub(super) struct Status {
    #[command(flatten)]
    config: ConfigArgs,

    /// Print it again and again
    #[arg(long)]
    watch: bool,

    /// Seconds between two prints
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600), requires = "watch")]
    every: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let stores = KeyStores::open(&config, "curt keys status", Access::Command)?;
            loop {
                self.print(&look(&config, &stores).await?)?;
                if !self.watch {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(self.every)).await;
            }
            stores.engines.close().await;
            Ok(())
        })
    }

    fn print(&self, shown: &Shown) -> anyhow::Result<()> {
        let text = match self.json {
            true => serde_json::to_string_pretty(&shown.json())?,
            false => shown.table(),
        };
        let mut out = std::io::stdout().lock();
        if self.watch && !self.json && out.is_terminal() {
            // To the top left, and everything below away.
            write!(out, "\x1b[H\x1b[2J")?;
        }
        writeln!(out, "{text}")?;
        Ok(())
    }
}

/// Strategies without a ledger have sums and nothing else.
async fn look(config: &Config, stores: &KeyStores) -> anyhow::Result<Shown> {
    let has_line = matches!(config.keys.strategy, Strategy::Pool | Strategy::Status);
    if !has_line {
        let supply =
            KeySupply::open_behind(&config.keys, stores.keys.clone(), KeyMetrics::default())?;
        return Ok(show::sums_only(supply.accounts().await?));
    }
    let mut status = KeyStatus::read(&stores.keys).await;
    status.forget_foreign_pools(&stores.keys.pools);
    let alarms = status.alarms(&config.keys);
    Ok(Shown::new(status, alarms, &config.store))
}
