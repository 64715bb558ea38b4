use clap::Args;
use curt_sqlite::Access;

use crate::cli::ConfigArgs;
use crate::clicks;
use crate::commands::block_on;
use crate::config::{self, Config};
use crate::wiring::{self, KeyStores};

/// Read the configuration, say what is wrong with it, or print it as it will be used
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt check --config curt.toml --set server.workers=4\n  curt check --config curt.toml --reach"
)]
pub(crate) struct Check {
    #[command(flatten)]
    config: ConfigArgs,

    /// Print the commented default file instead
    #[arg(long)]
    defaults: bool,

    /// Print the built-in rules for user agents and referrers instead, as a file for clicks.rules
    #[arg(long, conflicts_with = "defaults")]
    rules: bool,

    /// Also ask every engine that runs elsewhere for a sign of life
    #[arg(long, conflicts_with_all = ["defaults", "rules"])]
    reach: bool,

    /// Print JSON
    #[arg(long, conflicts_with_all = ["defaults", "rules"])]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.defaults {
            print!("{}", config::default_text());
            return Ok(());
        }
        if self.rules {
            print!("{}", curt_clicks::classify::BUILT_IN);
            return Ok(());
        }
        let config = Config::load(&self.config)?;
        if let Some(settings) = &config.clicks {
            clicks::reference(settings)?;
        }
        block_on(async { wiring::check_addresses(&config) })?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&config.shown())?);
        } else {
            print!("{}", toml::to_string(&config.shown())?);
            eprintln!("curt: the configuration is sound");
        }
        if self.reach {
            block_on(reach(&config))?;
        }
        Ok(())
    }
}

async fn reach(config: &Config) -> anyhow::Result<()> {
    let stores = KeyStores::open(config, "curt check", Access::Command)?;
    let mut away = 0;
    for (address, answer) in stores.engines.reach().await {
        match answer {
            Ok(()) => eprintln!("curt: {address} answers"),
            Err(error) => {
                eprintln!("curt: {address} does not answer: {error}");
                away += 1;
            }
        }
    }
    stores.engines.close().await;
    anyhow::ensure!(away == 0, "{away} engines do not answer");
    Ok(())
}
