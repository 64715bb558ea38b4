use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::Args;
use curt_keys::{BalanceWatch, KeyAudit, KeyMetrics, KeyStatus, KeySupply, Strategy};
use curt_sqlite::Access;

use super::show::{self, Shown};
use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::KeyStores;

/// Print where the keys are: keys database, pool and processes, shard by shard, with the sums and what to look at
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt keys status --watch --every 5\n  curt keys status --audit --json"
)]
pub(super) struct Status {
    #[command(flatten)]
    config: ConfigArgs,

    /// Compare the keys themselves in pools, buffers and on links: tells keys that are in two places from leaked ones.
    /// Reads all pools and looks up a link for each key in them; exact while no links are created
    #[arg(long, conflicts_with = "watch")]
    audit: bool,

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
                self.print(&self.read_status(&config, &stores).await?)?;
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

impl Status {
    /// Strategies without a ledger have sums and nothing else.
    async fn read_status(&self, config: &Config, stores: &KeyStores) -> anyhow::Result<Shown> {
        let has_line = matches!(config.keys.strategy, Strategy::Pool | Strategy::Status);
        if !has_line {
            let supply =
                KeySupply::open_behind(&config.keys, stores.keys.clone(), KeyMetrics::default())?;
            return Ok(show::counts_only(supply.count_keys().await?));
        }
        let audit = match self.audit {
            true => Some(KeyAudit::run(&stores.keys).await?),
            false => None,
        };
        let mut status = read_key_status(config, stores).await;
        status.audit = audit;
        let mut balances = status.key_counts().map(|counts| counts.balances());
        if balances == Some(false) && !self.audit {
            balances = Some(!is_confirmed(config, stores).await);
        }
        let alarms = status.alarms(&config.keys, balances == Some(false));
        Ok(Shown::new(status, balances, alarms, &config.store))
    }
}

async fn read_key_status(config: &Config, stores: &KeyStores) -> KeyStatus {
    let mut status = KeyStatus::read(&stores.keys).await;
    // Heartbeats are then in the memory of the server: what its buffer holds is not told here.
    if !config.store.leases.kind().is_shared() {
        match config.store.pool.is_empty() {
            true => status.assume_one_holder(),
            false => status.instances = None,
        }
    }
    status
}

/// Whether more keys than were made are found in several looks: one alone may meet a key twice that moves.
async fn is_confirmed(config: &Config, stores: &KeyStores) -> bool {
    let mut watch = BalanceWatch::default();
    for _ in 0..BalanceWatch::LOOKS_TO_CONFIRM {
        tokio::time::sleep(config.keys.tick).await;
        let status = read_key_status(config, stores).await;
        if watch.add(status).is_some_and(|keys| keys > 0) {
            return true;
        }
    }
    false
}
