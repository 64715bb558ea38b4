use clap::Args;
use curt_adapters::sqlite::Sqlite;

use crate::cli::ConfigArgs;
use crate::config::{Config, Database};

/// Bring the databases to this version's schema; `curt serve` does the same at its start
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt migrate --dry-run --config curt.toml")]
pub(crate) struct Migrate {
    #[command(flatten)]
    config: ConfigArgs,

    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

impl Migrate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        let mut databases = vec![&config.store.links];
        databases.extend(
            config
                .store
                .keys
                .as_ref()
                .filter(|keys| **keys != config.store.links),
        );
        for database in databases {
            let Database::Sqlite(path) = database else {
                println!("memory: nothing to do");
                continue;
            };
            let pending = Sqlite::pending(path)?;
            if !self.dry_run && !pending.is_empty() {
                Sqlite::migrate(path)?;
            }
            if pending.is_empty() {
                println!("{}: up to date", path.display());
            }
            let done = if self.dry_run {
                "would apply"
            } else {
                "applied"
            };
            for step in pending {
                println!(
                    "{}: {done} {:04} {}",
                    path.display(),
                    step.number,
                    step.name
                );
            }
        }
        Ok(())
    }
}
