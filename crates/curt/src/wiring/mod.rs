//! The composition root: from configuration to ports.

mod address;
mod engines;
mod masking;
mod observed;
mod table;

use std::sync::Arc;

use anyhow::Context as _;
use curt_accounts::AccountServices;
use curt_core::ports::{Accounts, ClickStore, Cursor, KeyFile};
use curt_core::{Clock, ClockGuard, ErrorKind, PortResult, SystemClock, UnixMillis};
use curt_keys::{KeyPorts, Strategy};
use curt_links::PurgePorts;
use curt_memory::MemoryQuotas;
use curt_sqlite::Access;
use jiff::Timestamp;

use crate::config::{Config, ConfigError};
use crate::lost_database;

pub(crate) use address::EngineAddress;
pub(crate) use engines::Engines;
use engines::{Coordination, EngineSettings, LinksDatabase};
pub(crate) use masking::masked;
pub(crate) use observed::PortErrors;
use observed::observed_links;
pub(crate) use table::{EngineKind, Part};

/// Everything that the configuration's addresses lead to, for a process that serves links.
pub(crate) struct Stores {
    pub(crate) main: LinksDatabase,
    pub(crate) keys: KeyPorts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) engines: Engines,
}

impl Stores {
    /// Opens every store, those of one server as its server.
    pub(crate) fn open(config: &Config, who: &str, errors: PortErrors) -> anyhow::Result<Self> {
        let mut opening = Opening::new(config, who, Access::Server)?;
        let mut main = opening.links()?;
        main.links = observed_links(main.links, &errors);
        let keys = opening.keys(Some(&main))?;
        Ok(Self {
            main,
            keys,
            clock: opening.clock,
            engines: opening.engines,
        })
    }

    /// Opens the clicks database, for a process that counts clicks or reports on them.
    pub(crate) fn open_clicks(&mut self, config: &Config) -> anyhow::Result<Arc<dyn ClickStore>> {
        open_clicks(&mut self.engines, config)
    }

    /// Everything around accounts, over this store.
    pub(crate) fn account_services(&self, config: &Config) -> anyhow::Result<AccountServices> {
        account_services(config, self.main.accounts.clone(), self.clock.clone())
    }

    pub(crate) fn purge_ports(&self, clock_guard: Arc<ClockGuard>) -> PurgePorts {
        PurgePorts {
            index: self.main.links.index.clone(),
            idempotency: self.main.links.idempotency.clone(),
            permissions: self.main.accounts.clone(),
            clock: self.clock.clone(),
            clock_guard: Some(clock_guard),
        }
    }
}

/// The stores of a process that only makes or moves keys. The links database is among them where it can be asked without
/// being kept from others; nothing waits for it.
pub(crate) struct KeyStores {
    pub(crate) keys: KeyPorts,
    pub(crate) engines: Engines,
}

impl KeyStores {
    pub(crate) fn open(config: &Config, who: &str, access: Access) -> anyhow::Result<Self> {
        let mut opening = Opening::new(config, who, access)?;
        let is_open_to_us = config.store.links.kind().is_shared() || access == Access::Command;
        let main = match is_open_to_us {
            true => Some(opening.links()?),
            false => None,
        };
        if access == Access::Command && config.store.clicks.kind().is_shared() {
            open_clicks(&mut opening.engines, config)?;
        }
        let keys = opening.keys(main.as_ref())?;
        Ok(Self {
            keys,
            engines: opening.engines,
        })
    }
}

/// Says which address of an engine that runs elsewhere cannot be used, as a process that opens it would. Nothing is
/// reached, and nothing is made on this machine.
pub(crate) fn check_addresses(config: &Config) -> anyhow::Result<()> {
    let store = &config.store;
    let mut engines = engines(config, "a check", Access::Command, Arc::new(SystemClock));
    if is_elsewhere(&store.links) {
        named("store.links", engines.links(&store.links))?;
    }
    if is_elsewhere(&store.clicks) {
        named("store.clicks", engines.clicks(&store.clicks))?;
    }
    for shard in store.keys.iter().filter(|address| is_elsewhere(address)) {
        named("store.keys", engines.ledger(shard, store.keys_form))?;
    }
    for (number, shard) in store
        .pool
        .iter()
        .filter(|address| is_elsewhere(address))
        .enumerate()
    {
        named("store.pool", engines.pool(shard, number, 1))?;
    }
    if is_elsewhere(&store.leases) {
        named("store.leases", engines.coordination(&store.leases))?;
    }
    for cursor in store.cursor.iter().filter(|address| is_elsewhere(address)) {
        named("store.cursor", engines.cursor(cursor))?;
    }
    if is_elsewhere(&store.files) {
        named("store.files", engines.files(&store.files))?;
    }
    Ok(())
}

fn is_elsewhere(address: &EngineAddress) -> bool {
    address.kind().is_shared() && address.kind() != EngineKind::Files
}

fn engines(config: &Config, who: &str, access: Access, clock: Arc<dyn Clock>) -> Engines {
    let mut sqlite = config.store.sqlite.clone();
    sqlite.access = access;
    Engines::new(EngineSettings {
        sqlite,
        postgres: config.store.postgres.clone(),
        holder: who.into(),
        lease_ttl: config.keys.lease_ttl,
        clock,
    })
}

/// Stores while they are being opened.
struct Opening<'a> {
    config: &'a Config,
    who: &'a str,
    clock: Arc<dyn Clock>,
    engines: Engines,
}

impl<'a> Opening<'a> {
    fn new(config: &'a Config, who: &'a str, access: Access) -> anyhow::Result<Self> {
        // A wrong setting leaves nothing behind, not even a folder.
        check_addresses(config)?;
        std::fs::create_dir_all(&config.data_dir).with_context(|| {
            format!(
                "could not make the data folder {}",
                config.data_dir.display()
            )
        })?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ok(Self {
            config,
            who,
            engines: engines(config, who, access, clock.clone()),
            clock,
        })
    }

    fn links(&mut self) -> anyhow::Result<LinksDatabase> {
        let address = &self.config.store.links;
        named("store.links", self.engines.links(address))
    }

    fn keys(&mut self, main: Option<&LinksDatabase>) -> anyhow::Result<KeyPorts> {
        let store = &self.config.store;
        let mut ledgers = Vec::with_capacity(store.keys.len());
        for shard in &store.keys {
            let opened = self.engines.ledger(shard, store.keys_form);
            ledgers.push(named("store.keys", opened)?);
        }
        let cap = usize::try_from(self.config.keys.pool.high.saturating_mul(2))?;
        let mut pools = Vec::with_capacity(store.pool.len());
        for (shard, address) in store.pool.iter().enumerate() {
            let opened = self.engines.pool(address, shard, cap);
            pools.push(named("store.pool", opened)?);
        }
        let Coordination { leases, heartbeats } =
            named("store.leases", self.engines.coordination(&store.leases))?;
        Ok(KeyPorts {
            ledgers,
            pools,
            links: main.map(|main| main.links.clone()),
            files: self.key_files()?,
            cursor: self.cursor(main)?,
            leases,
            heartbeats,
            clock: self.clock.clone(),
            who: self.who.into(),
        })
    }

    fn cursor(&mut self, main: Option<&LinksDatabase>) -> anyhow::Result<Arc<dyn Cursor>> {
        match (&self.config.store.cursor, main) {
            (Some(address), _) => named("store.cursor", self.engines.cursor(address)),
            (None, Some(main)) => Ok(main.cursor.clone()),
            // Only a process that has the links database uses what is kept there.
            (None, None) => named("store.cursor", self.engines.cursor(&EngineAddress::MEMORY)),
        }
    }

    /// Only the strategy that uses key files makes their folder.
    fn key_files(&mut self) -> anyhow::Result<Option<Arc<dyn KeyFile>>> {
        if self.config.keys.strategy != Strategy::File {
            return Ok(None);
        }
        let files = self.engines.files(&self.config.store.files);
        named("store.files", files).map(Some)
    }
}

fn open_clicks(engines: &mut Engines, config: &Config) -> anyhow::Result<Arc<dyn ClickStore>> {
    named("store.clicks", engines.clicks(&config.store.clicks))
}

/// Says which setting led to a store that cannot be opened. An address that cannot be used is a wrong setting.
fn named<T>(key: &str, opened: PortResult<T>) -> anyhow::Result<T> {
    opened.map_err(|error| match error.kind {
        ErrorKind::Invalid => ConfigError::new(format!("{key}: {}", error.detail)).into(),
        _ => anyhow::Error::new(error).context(key.to_owned()),
    })
}

/// Limits are counted in this process: where several answer requests, each allows as much as the settings say.
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
    engines: Engines,
}

impl Beside {
    pub(crate) fn open(config: &Config) -> anyhow::Result<Self> {
        if config.store.links.kind() == EngineKind::Memory {
            anyhow::bail!(
                "store.links is memory: there is nothing that outlives the server; use sqlite:PATH"
            );
        }
        lost_database::refuse(config)?;
        let mut opening = Opening::new(config, "a command", Access::Command)?;
        let main = opening.links()?;
        Ok(Self {
            accounts: account_services(config, main.accounts, opening.clock.clone())?,
            engines: opening.engines,
        })
    }

    pub(crate) async fn close(&self) {
        self.engines.close().await;
    }
}

/// A time as people and other programs read it.
pub(crate) fn rfc3339(time: UnixMillis) -> String {
    Timestamp::from_millisecond(time.0)
        .map_or_else(|_| time.to_string(), |stamp| format!("{stamp:.3}"))
}
