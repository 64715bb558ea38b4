use clap::Args;

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::{self, Config, ConfigError};
use crate::exit_code::{CommandError, ExitReason};
use crate::preflight;
use crate::wiring::{self, Engines};

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
        let (config, mistakes) = Config::read(&self.config);
        let Some(config) = config else {
            return Err(mistakes.into());
        };
        block_on(async {
            let engines = look_through(&config, mistakes)?;
            if self.json {
                println!("{}", serde_json::to_string_pretty(&config.shown())?);
            } else {
                print!("{}", toml::to_string(&config.shown())?);
            }
            let warnings = preflight::warnings(&config);
            for warning in &warnings {
                eprintln!("curt: warning: {warning}");
            }
            match warnings.len() {
                0 => eprintln!("curt: the configuration is sound"),
                number => {
                    eprintln!("curt: the configuration can be used; see the warnings: {number}")
                }
            }
            match self.reach {
                true => reach(&engines).await,
                false => Ok(()),
            }
        })
    }
}

/// Finds what else a server would refuse, all of it, and returns the engines that run elsewhere.
fn look_through(config: &Config, mut mistakes: ConfigError) -> anyhow::Result<Engines> {
    if mistakes.note(preflight::refuse(config)).is_some() {
        mistakes.note(preflight::read_files(config));
    }
    match wiring::check_addresses(config) {
        Ok(engines) => {
            mistakes.into_result()?;
            Ok(engines)
        }
        Err(error) => {
            mistakes.note::<()>(Err(error.downcast::<ConfigError>()?));
            Err(mistakes.into())
        }
    }
}

async fn reach(engines: &Engines) -> anyhow::Result<()> {
    let mut away = 0;
    for (address, answer) in engines.reach().await {
        match answer {
            Ok(()) => eprintln!("curt: {address} answers"),
            Err(error) => {
                eprintln!("curt: {address} does not answer: {error}");
                away += 1;
            }
        }
    }
    if away > 0 {
        let message = format!("engines that do not answer: {away}");
        return Err(CommandError::new(ExitReason::Unreachable, message).into());
    }
    Ok(())
}
