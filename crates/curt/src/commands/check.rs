use clap::Args;

use crate::cli::ConfigArgs;
use crate::config::{self, Config};

/// Read the configuration, say what is wrong with it, or print it as it will be used
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt check --config curt.toml --set server.workers=4")]
pub(crate) struct Check {
    #[command(flatten)]
    config: ConfigArgs,

    /// Print the commented default file instead
    #[arg(long)]
    defaults: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "defaults")]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.defaults {
            print!("{}", config::default_text());
            return Ok(());
        }
        let config = Config::load(&self.config)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&config.shown())?);
        } else {
            print!("{}", toml::to_string(&config.shown())?);
            eprintln!("curt: the configuration is sound");
        }
        Ok(())
    }
}
