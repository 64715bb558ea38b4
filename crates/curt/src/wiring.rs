//! The composition root: from configuration to ports.

use std::sync::Arc;

use anyhow::Context as _;
use curt_accounts::AccountServices;
use curt_adapters::files::DiskKeyFile;
use curt_adapters::memory::{
    MemoryAccounts, MemoryClickStore, MemoryCursor, MemoryKeyFile, MemoryKeyLedger, MemoryKeyPool,
    MemoryLinkStore, MemoryLocks, MemoryQuotas,
};
use curt_adapters::sqlite::{Access, Sqlite};
use curt_adapters::wrap::{ObservedLinks, PortErrors};
use curt_core::ports::{Accounts, ClickStore, Cursor, KeyFile, KeyLedger, KeyPool, LinkStore};
use curt_core::{Clock, SystemClock, UnixMillis};
use curt_keys::{KeyPorts, Strategy};
use jiff::Timestamp;

use crate::config::{Config, Database, Files};

/// Everything that the configuration's addresses lead to.
pub(crate) struct Stores {
    pub(crate) links: Arc<dyn LinkStore>,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) clicks: Arc<dyn ClickStore>,
    pub(crate) keys: KeyPorts,
    pub(crate) clock: Arc<dyn Clock>,
    databases: Vec<Arc<Sqlite>>,
}

impl Stores {
    /// Opens every store as the one server of it.
    pub(crate) fn open(config: &Config, errors: PortErrors) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&config.data_dir).with_context(|| {
            format!(
                "could not make the data folder {}",
                config.data_dir.display()
            )
        })?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut databases = Vec::new();
        let mut main = Main::open(config, Access::Server, &mut databases)?;
        main.links = Arc::new(ObservedLinks::new(main.links, errors));
        let ledger = ledger(config, &mut databases)?;
        let pool_cap = usize::try_from(config.keys.pool.high.saturating_mul(2))?;
        let pools = (0..config.store.pools)
            .map(|_| Arc::new(MemoryKeyPool::new(pool_cap)) as Arc<dyn KeyPool>)
            .collect();
        let keys = KeyPorts {
            ledgers: vec![ledger],
            pools,
            links: main.links.clone(),
            files: key_files(config)?,
            cursor: main.cursor,
            locks: Arc::new(MemoryLocks::new(clock.clone())),
            clock: clock.clone(),
        };
        Ok(Self {
            links: main.links,
            accounts: main.accounts,
            clicks: main.clicks,
            keys,
            clock,
            databases,
        })
    }

    /// Everything around accounts, over this store.
    pub(crate) fn account_services(&self, config: &Config) -> anyhow::Result<AccountServices> {
        account_services(config, self.accounts.clone(), self.clock.clone())
    }

    /// Waits for what is being written and closes the files.
    pub(crate) async fn close(&self) {
        for database in &self.databases {
            database.close().await;
        }
    }
}

/// The main database's ports.
struct Main {
    links: Arc<dyn LinkStore>,
    cursor: Arc<dyn Cursor>,
    accounts: Arc<dyn Accounts>,
    clicks: Arc<dyn ClickStore>,
}

impl Main {
    fn open(
        config: &Config,
        access: Access,
        databases: &mut Vec<Arc<Sqlite>>,
    ) -> anyhow::Result<Self> {
        Ok(match &config.store.links {
            Database::Memory => Self {
                links: Arc::new(MemoryLinkStore::new()),
                cursor: Arc::new(MemoryCursor::new()),
                accounts: Arc::new(MemoryAccounts::new()),
                clicks: Arc::new(MemoryClickStore::new()),
            },
            Database::Sqlite(path) => {
                let mut settings = config.store.sqlite.clone();
                settings.access = access;
                let database = Sqlite::open(path, settings)?;
                databases.push(database.clone());
                Self {
                    links: database.links(),
                    cursor: database.cursor(),
                    accounts: database.accounts(),
                    clicks: database.clicks(),
                }
            }
        })
    }
}

fn ledger(config: &Config, databases: &mut Vec<Arc<Sqlite>>) -> anyhow::Result<Arc<dyn KeyLedger>> {
    let form = config.store.keys_form;
    let database = match &config.store.keys {
        Some(Database::Memory) => return Ok(Arc::new(MemoryKeyLedger::new())),
        Some(own) if *own != config.store.links => own,
        _ => &config.store.links,
    };
    Ok(match (database, databases.first()) {
        (Database::Memory, _) => Arc::new(MemoryKeyLedger::new()),
        (same, Some(open)) if *same == config.store.links => open.ledger(form),
        (Database::Sqlite(path), _) => {
            let database = Sqlite::open(path, config.store.sqlite.clone())?;
            databases.push(database.clone());
            database.ledger(form)
        }
    })
}

/// Only the strategy that uses key files makes their folder.
fn key_files(config: &Config) -> anyhow::Result<Option<Arc<dyn KeyFile>>> {
    if config.keys.strategy != Strategy::File {
        return Ok(None);
    }
    Ok(Some(match &config.store.files {
        Files::Memory => Arc::new(MemoryKeyFile::new()),
        Files::Folder(path) => Arc::new(DiskKeyFile::open(path)?),
    }))
}

/// Limits are counted in this process: it is the only one that answers requests.
fn account_services(
    config: &Config,
    accounts: Arc<dyn Accounts>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<AccountServices> {
    Ok(AccountServices::new(
        config.accounts.clone(),
        config.limits.clone(),
        accounts,
        Arc::new(MemoryQuotas::new()),
        clock,
    )?)
}

/// What a command needs that runs beside a server.
pub(crate) struct Beside {
    pub(crate) accounts: AccountServices,
    databases: Vec<Arc<Sqlite>>,
}

impl Beside {
    pub(crate) fn open(config: &Config) -> anyhow::Result<Self> {
        if config.store.links == Database::Memory {
            anyhow::bail!(
                "store.links is memory: there is nothing that outlives the server; use sqlite:PATH"
            );
        }
        std::fs::create_dir_all(&config.data_dir).with_context(|| {
            format!(
                "could not make the data folder {}",
                config.data_dir.display()
            )
        })?;
        let mut databases = Vec::new();
        let main = Main::open(config, Access::Command, &mut databases)?;
        Ok(Self {
            accounts: account_services(config, main.accounts, Arc::new(SystemClock))?,
            databases,
        })
    }

    pub(crate) async fn close(&self) {
        for database in &self.databases {
            database.close().await;
        }
    }
}

/// A time as people and other programs read it.
pub(crate) fn rfc3339(time: UnixMillis) -> String {
    Timestamp::from_millisecond(time.0).map_or_else(|_| time.to_string(), |stamp| stamp.to_string())
}
