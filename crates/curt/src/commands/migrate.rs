use clap::Args;
use curt_sqlite::{Access, Sqlite};

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::{Config, StoreSettings};
use crate::wiring::{EngineAddress, EngineKind, KeyStores};
use crate::{data, lost_database};

/// Bring the databases to this version's schema; `curt serve` does the same at its start
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt migrate --dry-run --config curt.toml\n  curt migrate --new             begin an installation without a server"
)]
pub(crate) struct Migrate {
    #[command(flatten)]
    config: ConfigArgs,

    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Begin a new installation, or go on with an empty database in the place of one that is gone
    #[arg(long)]
    new: bool,
}

impl Migrate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        if !self.new {
            lost_database::refuse(&config)?;
            data::require(&config)?;
        } else if !self.dry_run {
            data::make_folder(&config)?;
        }
        let mut files = Vec::new();
        for (_, address) in config.store.addresses() {
            match address.kind() {
                EngineKind::Sqlite if !files.contains(&address.path()) => {
                    files.push(address.path());
                    self.migrate_file(address, &config.store)?;
                }
                _ => {}
            }
        }
        block_on(self.migrate_servers(&config))
    }

    fn migrate_file(&self, address: &EngineAddress, store: &StoreSettings) -> anyhow::Result<()> {
        let (path, clicks) = (address.path(), &store.clicks);
        let pending = match address == clicks {
            true => Sqlite::pending_clicks(path)?,
            false => Sqlite::pending(path)?,
        };
        if !self.dry_run && !pending.is_empty() {
            match address == clicks {
                true => Sqlite::migrate_clicks(path)?,
                false => Sqlite::migrate(path)?,
            };
        }
        let steps: Vec<_> = pending
            .iter()
            .map(|step| (step.number, step.name))
            .collect();
        self.print_steps(&path.display(), &steps);
        Ok(())
    }

    async fn migrate_servers(&self, config: &Config) -> anyhow::Result<()> {
        let has_servers = config
            .store
            .addresses()
            .any(|(_, address)| address.kind().has_tables_elsewhere());
        if !has_servers {
            return Ok(());
        }
        let stores = KeyStores::open(config, "curt migrate", Access::Command)?;
        for database in stores.engines.migrate(self.dry_run).await? {
            self.print_steps(&database.address, &database.steps);
        }
        stores.engines.close().await;
        Ok(())
    }

    fn print_steps(&self, database: &dyn std::fmt::Display, steps: &[(u32, &str)]) {
        if steps.is_empty() {
            println!("{database}: up to date");
        }
        let done = match self.dry_run {
            true => "would apply",
            false => "applied",
        };
        for (number, name) in steps {
            println!("{database}: {done} {number:04} {name}");
        }
    }
}
