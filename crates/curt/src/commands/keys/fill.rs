use clap::Args;
use curt_keys::{KeyMetrics, KeySupply};
use curt_sqlite::Access;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use tokio_util::sync::CancellationToken;

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::KeyStores;

/// Write key files ahead of time (strategy "file"), until so many keys wait in them
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt keys fill --until 10000000 --config curt.toml")]
pub(super) struct Fill {
    #[command(flatten)]
    config: ConfigArgs,

    /// Keys that shall wait; files are whole, so it may become more
    #[arg(long, value_name = "KEYS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    until: u64,
}

impl Fill {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let stores = KeyStores::open(&config, "curt keys fill", Access::Command)?;
            let supply =
                KeySupply::open_behind(&config.keys, stores.keys.clone(), KeyMetrics::default())?;
            let stop = CancellationToken::new();
            let interrupted = stop.clone();
            #[expect(clippy::disallowed_methods, reason = "ends with the command")]
            tokio::spawn(async move {
                if tokio::signal::ctrl_c().await.is_ok() {
                    interrupted.cancel();
                }
            });
            let bar = bar(self.until);
            let waiting = supply
                .stock_files(self.until, &stop, |waiting| bar.set_position(waiting))
                .await;
            bar.finish_and_clear();
            stores.engines.close().await;
            let waiting = waiting?;
            anyhow::ensure!(
                waiting >= self.until,
                "stopped: {} keys wait, and nothing is left of the file that was begun",
                HumanCount(waiting)
            );
            println!("{} keys wait in key files", HumanCount(waiting));
            Ok(())
        })
    }
}

/// Shown on a terminal only.
fn bar(keys: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:40} {human_pos} of {human_len} keys, {per_sec}, {eta} left",
    );
    ProgressBar::new(keys).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
