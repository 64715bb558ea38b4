//! The composition root: from configuration to ports.

mod address;
mod engines;
mod masking;
mod observed;
mod quotas;
mod read_only;
mod streams;
mod table;
mod tuning;

use std::sync::Arc;

use curt_accounts::AccountServices;
use curt_core::ports::{
    Accounts, ClickCounters, ClickDatabase, Cursor, Invalidations, KeyFile, LinkCache, Quotas,
    ShardMaps,
};
use curt_core::{Clock, ClockGuard, ErrorKind, NodeIndex, PortResult, SystemClock, UnixMillis};
use curt_keys::{HeldLeases, KeyPorts, Strategy};
use curt_links::PurgePorts;
use curt_shards::{MoverSettings, ShardMover, ShardNode};
use curt_sqlite::Access;
use jiff::Timestamp;

use crate::config::{Config, ConfigError};
use crate::{data, lost_database};

pub(crate) use address::EngineAddress;
use engines::{Coordination, EngineSettings, LinksDatabase};
pub(crate) use engines::{Engines, StreamEnd};
pub(crate) use masking::masked;
pub(crate) use observed::PortErrors;
use observed::observed_links;
use quotas::QuotaPorts;
pub(crate) use read_only::ReadOnly;
pub(crate) use streams::{stream_sink, stream_tail};
pub(crate) use table::{EngineKind, Part};
pub(crate) use tuning::EngineTuning;

/// Everything that the configuration's addresses lead to, for a process that serves links.
pub(crate) struct Stores {
    pub(crate) main: LinksDatabase,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) quotas: QuotaPorts,
    /// Servers of the cache that processes share, by name.
    pub(crate) caches: Vec<(String, Arc<dyn LinkCache>)>,
    /// `None`: processes tell each other nothing.
    pub(crate) invalidations: Option<Arc<dyn Invalidations>>,
    pub(crate) keys: KeyPorts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) engines: Engines,
    pub(crate) read_only: ReadOnly,
}

impl Stores {
    /// Opens every store, those of one server as its server.
    pub(crate) fn open(config: &Config, who: &str, errors: PortErrors) -> anyhow::Result<Self> {
        let mut opening = Opening::new(config, who, Access::Server)?;
        let mut main = opening.links()?;
        let read_only = ReadOnly::look(config);
        // Outside: what is refused on purpose is no failure of the store.
        main.links = read_only.guard_links(observed_links(main.links, &errors));
        let keys = opening.keys(Some(&main))?;
        Ok(Self {
            accounts: read_only.guard_accounts(opening.accounts()?),
            read_only,
            quotas: opening.quotas()?,
            caches: opening.caches()?,
            invalidations: opening.invalidations()?,
            main,
            keys,
            clock: opening.clock,
            engines: opening.engines,
        })
    }

    /// Opens the clicks database, for a process that counts clicks or reports on them.
    pub(crate) fn open_clicks(
        &mut self,
        config: &Config,
    ) -> anyhow::Result<Arc<dyn ClickDatabase>> {
        let clicks = open_clicks(&mut self.engines, config)?;
        Ok(self.read_only.guard_clicks(clicks))
    }

    /// Opens what windows of clicks are kept in, for a process that counts clicks.
    pub(crate) fn open_click_counters(
        &mut self,
        address: &EngineAddress,
    ) -> anyhow::Result<Arc<dyn ClickCounters>> {
        named(Part::Counters, self.engines.click_counters(address))
    }

    /// Everything around accounts, over this store.
    pub(crate) fn account_services(&self, config: &Config) -> anyhow::Result<AccountServices> {
        let (accounts, quotas) = (self.accounts.clone(), self.quotas.port.clone());
        account_services(config, accounts, quotas, self.clock.clone())
    }

    pub(crate) fn purge_ports(&self, config: &Config, clock_guard: Arc<ClockGuard>) -> PurgePorts {
        PurgePorts {
            index: self.main.links.index.clone(),
            nodes: self.main.links.nodes.clone(),
            leases: Arc::new(HeldLeases::new(
                self.keys.leases.clone(),
                config.keys.lease_ttl,
            )),
            idempotency: self.main.links.idempotency.clone(),
            permissions: self.accounts.clone(),
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
        // So that a command reaches and migrates what other processes use.
        if access == Access::Command && config.store.accounts.kind().is_shared() {
            opening.accounts()?;
        }
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

/// The nodes of the links database and their map, for commands that move shards.
pub(crate) struct ShardStores {
    pub(crate) nodes: Vec<ShardNode>,
    pub(crate) maps: Arc<dyn ShardMaps>,
    pub(crate) engines: Engines,
    addresses: Vec<EngineAddress>,
    clock: Arc<dyn Clock>,
}

impl ShardStores {
    /// Files belong to one process: they are opened as their server would, which a running one refuses.
    pub(crate) fn open(config: &Config, who: &str, access: Access) -> anyhow::Result<Self> {
        let store = &config.store;
        if store.links.kind() == EngineKind::Memory {
            anyhow::bail!("store.links is memory: nothing in it outlives the server");
        }
        // A file that is new, or lost and made anew, has another identity, and gets nothing.
        let mut opening = Opening::new(config, who, access)?;
        Ok(Self {
            nodes: named(Part::Links, opening.engines.shard_nodes(&store.links_nodes))?,
            maps: named(Part::ShardMap, opening.engines.shard_maps(&store.shard_map))?,
            engines: opening.engines,
            addresses: store.links_nodes.clone(),
            clock: opening.clock,
        })
    }

    /// The address of a node. `None`: store.links does not name it.
    pub(crate) fn name(&self, node: NodeIndex) -> Option<String> {
        let address = self.addresses.get(usize::try_from(node.0).ok()?);
        address.map(ToString::to_string)
    }

    pub(crate) fn mover(&self, settings: MoverSettings) -> ShardMover {
        let copied = self.nodes.iter();
        let nodes = copied.map(|node| ShardNode::new(node.name.clone(), Arc::clone(&node.shards)));
        let clock = Arc::clone(&self.clock);
        ShardMover::new(nodes.collect(), Arc::clone(&self.maps), clock, settings)
    }
}

/// The engines of one side of a copy.
pub(crate) fn copy_engines(config: &Config, access: Access) -> Engines {
    engines(config, "curt copy", access, Arc::new(SystemClock))
}

/// Says which address of an engine that runs elsewhere cannot be used, as a process that opens it would, and returns
/// these engines. Nothing is reached, and nothing is made on this machine.
pub(crate) fn check_addresses(config: &Config) -> anyhow::Result<Engines> {
    let mut engines = engines(config, "a check", Access::Command, Arc::new(SystemClock));
    for (part, address) in config.store.addresses() {
        if is_elsewhere(address) {
            named(part, engines.check(part, address))?;
        }
    }
    Ok(engines)
}

fn is_elsewhere(address: &EngineAddress) -> bool {
    address.kind().is_shared() && address.kind() != EngineKind::Files
}

fn engines(config: &Config, who: &str, access: Access, clock: Arc<dyn Clock>) -> Engines {
    Engines::new(EngineSettings {
        tuning: config.store.tuning.clone(),
        access,
        holder: who.into(),
        lease_ttl: config.keys.lease_ttl,
        clock,
        region: config.store.region.clone(),
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
        // Only a server begins an installation; a command that finds none is in the wrong place.
        match access {
            Access::Server => data::make_folder(config)?,
            Access::Command => data::require(config)?,
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ok(Self {
            config,
            who,
            engines: engines(config, who, access, clock.clone()),
            clock,
        })
    }

    fn links(&mut self) -> anyhow::Result<LinksDatabase> {
        let store = &self.config.store;
        let opened = match store.is_sharded() {
            true => {
                let nodes = (&store.links_nodes, &store.shard_map);
                self.engines
                    .sharded_links(nodes.0, nodes.1, store.placement)
            }
            false => self.engines.links(&store.links),
        };
        named(Part::Links, opened)
    }

    fn accounts(&mut self) -> anyhow::Result<Arc<dyn Accounts>> {
        let address = &self.config.store.accounts;
        named(Part::Accounts, self.engines.accounts(address))
    }

    fn quotas(&mut self) -> anyhow::Result<QuotaPorts> {
        let store = &self.config.store;
        let opened = named(Part::Quotas, self.engines.quotas(&store.quotas))?;
        Ok(match store.quotas.kind().is_shared() {
            true => QuotaPorts::shared(opened, store.quotas_timeout, &self.clock),
            false => QuotaPorts::of_process(opened),
        })
    }

    fn caches(&mut self) -> anyhow::Result<Vec<(String, Arc<dyn LinkCache>)>> {
        let mut caches = Vec::new();
        for address in &self.config.store.cache {
            let cache = named(Part::Cache, self.engines.link_cache(address))?;
            // Without a password, as it is shown.
            caches.push((address.to_string(), cache));
        }
        Ok(caches)
    }

    fn invalidations(&mut self) -> anyhow::Result<Option<Arc<dyn Invalidations>>> {
        let Some(address) = &self.config.store.invalidations else {
            return Ok(None);
        };
        named(Part::Invalidations, self.engines.invalidations(address)).map(Some)
    }

    fn keys(&mut self, main: Option<&LinksDatabase>) -> anyhow::Result<KeyPorts> {
        let store = &self.config.store;
        let mut ledgers = Vec::with_capacity(store.keys.len());
        for shard in &store.keys {
            let opened = self.engines.ledger(shard, store.keys_form);
            ledgers.push(named(Part::Keys, opened)?);
        }
        let cap = usize::try_from(self.config.keys.pool.high.saturating_mul(2))?;
        let mut pools = Vec::with_capacity(store.pool.len());
        for (shard, address) in store.pool.iter().enumerate() {
            let opened = self.engines.pool(address, shard, cap);
            pools.push(named(Part::Pool, opened)?);
        }
        let Coordination { leases, heartbeats } =
            named(Part::Leases, self.engines.coordination(&store.leases))?;
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
            (Some(address), _) => named(Part::Cursor, self.engines.cursor(address)),
            (None, Some(main)) => Ok(main.cursor.clone()),
            // Only a process that has the links database uses what is kept there.
            (None, None) => named(Part::Cursor, self.engines.cursor(&EngineAddress::MEMORY)),
        }
    }

    /// Only the strategy that uses key files makes their folder.
    fn key_files(&mut self) -> anyhow::Result<Option<Arc<dyn KeyFile>>> {
        if self.config.keys.strategy != Strategy::File {
            return Ok(None);
        }
        let files = self.engines.files(&self.config.store.files);
        named(Part::Files, files).map(Some)
    }
}

fn open_clicks(engines: &mut Engines, config: &Config) -> anyhow::Result<Arc<dyn ClickDatabase>> {
    named(Part::Clicks, engines.clicks(&config.store.clicks))
}

/// Says which setting led to a store that cannot be opened. An address that cannot be used is a wrong setting.
fn named<T>(part: Part, opened: PortResult<T>) -> anyhow::Result<T> {
    let key = part.setting();
    opened.map_err(|error| match error.kind {
        ErrorKind::Invalid => ConfigError::new(format!("{key}: {}", error.detail)).into(),
        _ => anyhow::Error::new(error).context(key),
    })
}

fn account_services(
    config: &Config,
    accounts: Arc<dyn Accounts>,
    quotas: Arc<dyn Quotas>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<AccountServices> {
    Ok(AccountServices::new(
        config.accounts.clone(),
        config.limits.clone(),
        accounts,
        quotas,
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
        if config.store.accounts.kind() == EngineKind::Memory {
            anyhow::bail!(
                "store.accounts is memory: nothing in it outlives the server; use sqlite:PATH"
            );
        }
        lost_database::refuse(config)?;
        let mut opening = Opening::new(config, "a command", Access::Command)?;
        let (accounts, quotas) = (opening.accounts()?, opening.quotas()?);
        Ok(Self {
            accounts: account_services(config, accounts, quotas.port, opening.clock.clone())?,
            engines: opening.engines,
        })
    }

    pub(crate) async fn close(&self) {
        self.engines.close().await;
    }
}

/// Formats a time as RFC 3339.
pub(crate) fn rfc3339(time: UnixMillis) -> String {
    Timestamp::from_millisecond(time.0)
        .map_or_else(|_| time.to_string(), |stamp| format!("{stamp:.3}"))
}
