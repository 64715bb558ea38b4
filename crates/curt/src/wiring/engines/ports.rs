//! Opens ports on the engines that serve them.

use std::num::NonZeroUsize;
use std::sync::Arc;

#[cfg(feature = "cassandra")]
use curt_cassandra::Cassandra;
#[cfg(any(feature = "cassandra", feature = "dynamodb", feature = "postgres"))]
use curt_core::ports::LinkDatabase;
use curt_core::ports::{
    Accounts, ClickCounters, ClickDatabase, Cursor, Invalidations, KeyFile, KeyLedger, KeyPool,
    LedgerForm, LinkCache, LinkPorts, LinkShards, Quotas, ShardMaps,
};
use curt_core::{Placement, PortResult};
#[cfg(feature = "dynamodb")]
use curt_dynamodb::DynamoDb;
use curt_memory::{
    MemoryAccounts, MemoryClickStore, MemoryCursor, MemoryHeartbeats, MemoryKeyFile,
    MemoryKeyLedger, MemoryLeases, MemoryLinkStore, MemoryQuotas, MemoryShardMaps,
};
#[cfg(feature = "postgres")]
use curt_postgres::Postgres;
use curt_shards::{ShardNode, ShardRouter};
use curt_sqlite::{Sqlite, SqliteSettings};

use super::{Coordination, EngineAddress, EngineKind, Engines, LinksDatabase, Opened, Part};
use super::{require, unserved};

/// The ports of a links database that cannot claim seeded links.
#[cfg(any(feature = "cassandra", feature = "dynamodb", feature = "postgres"))]
fn without_seeds(links: Arc<dyn LinkDatabase>) -> LinkPorts {
    LinkPorts {
        store: links.clone(),
        index: links.clone(),
        totals: links.clone(),
        idempotency: links,
        seeded: None,
        homes: None,
        nodes: Vec::new(),
    }
}

impl Engines {
    pub(crate) fn links(&mut self, address: &EngineAddress) -> PortResult<LinksDatabase> {
        match self.engine(Part::Links, address)? {
            Opened::Memory => Ok(LinksDatabase {
                links: Arc::new(MemoryLinkStore::new()).into(),
                cursor: Arc::new(MemoryCursor::new()),
                router: None,
            }),
            Opened::Sqlite(database) => Ok(LinksDatabase {
                links: database.links().into(),
                cursor: database.cursor(),
                router: None,
            }),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) if database.is_distributed() => {
                let set = &curt_postgres::DISTRIBUTED_LINKS;
                self.tables.push((address.clone(), set));
                Ok(LinksDatabase {
                    links: without_seeds(database.distributed_links()),
                    cursor: database.cursor(),
                    router: None,
                })
            }
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                for set in [&curt_postgres::LINKS, &curt_postgres::CURSORS] {
                    self.tables.push((address.clone(), set));
                }
                Ok(LinksDatabase {
                    links: database.links().into(),
                    cursor: database.cursor(),
                    router: None,
                })
            }
            #[cfg(feature = "cassandra")]
            Opened::Cassandra(cluster) => Ok(LinksDatabase {
                links: without_seeds(cluster.links()),
                cursor: cluster.cursor(),
                router: None,
            }),
            #[cfg(feature = "dynamodb")]
            Opened::DynamoDb(tables) => Ok(LinksDatabase {
                links: without_seeds(tables.links()),
                cursor: tables.cursor(),
                router: None,
            }),
            _ => Err(unserved(address)),
        }
    }

    /// The same ports over several nodes, by the map at `shard_map`.
    pub(crate) fn sharded_links(
        &mut self,
        nodes: &[EngineAddress],
        shard_map: &EngineAddress,
        placement: Placement,
    ) -> PortResult<LinksDatabase> {
        let opened = self.shard_nodes(nodes)?;
        let cursor = self.links(&nodes[0])?.cursor;
        let (maps, region) = (self.shard_maps(shard_map)?, self.settings.region.clone());
        let router = ShardRouter::in_region(opened, maps, placement, region);
        let mut links = LinkPorts::from(Arc::clone(&router));
        links.homes = Some(Arc::clone(&router) as _);
        links.nodes = router.node_indexes();
        Ok(LinksDatabase {
            links,
            cursor,
            router: Some(router),
        })
    }

    /// Every node by itself, for moves between them.
    pub(crate) fn shard_nodes(&mut self, nodes: &[EngineAddress]) -> PortResult<Vec<ShardNode>> {
        let mut opened = Vec::with_capacity(nodes.len());
        for node in nodes {
            opened.push(ShardNode::new(node.to_string(), self.links_node(node)?));
        }
        Ok(opened)
    }

    pub(crate) fn links_node(
        &mut self,
        address: &EngineAddress,
    ) -> PortResult<Arc<dyn LinkShards>> {
        // No shards of an engine that moves links by itself.
        if address.spreads_by_itself() {
            require(Part::ShardMap, address)?;
        }
        match self.engine(Part::Links, address)? {
            Opened::Memory => Ok(Arc::new(MemoryLinkStore::new())),
            Opened::Sqlite(database) => Ok(database.shards()),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                self.tables.push((address.clone(), &curt_postgres::LINKS));
                Ok(database.shards())
            }
            _ => Err(unserved(address)),
        }
    }

    pub(crate) fn shard_maps(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn ShardMaps>> {
        match self.engine(Part::ShardMap, address)? {
            Opened::Memory => Ok(Arc::new(MemoryShardMaps::new())),
            Opened::Sqlite(database) => Ok(database.shard_maps()),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                self.tables
                    .push((address.clone(), &curt_postgres::SHARD_MAP));
                Ok(database.shard_maps())
            }
            #[cfg(feature = "zookeeper")]
            Opened::ZooKeeper(zookeeper) => Ok(zookeeper.shard_maps()),
            _ => Err(unserved(address)),
        }
    }

    pub(crate) fn accounts(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn Accounts>> {
        match self.engine(Part::Accounts, address)? {
            Opened::Memory => Ok(Arc::new(MemoryAccounts::new())),
            Opened::Sqlite(database) => Ok(database.accounts()),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                self.tables
                    .push((address.clone(), &curt_postgres::ACCOUNTS));
                Ok(database.accounts())
            }
            #[cfg(feature = "cassandra")]
            Opened::Cassandra(cluster) => Ok(cluster.accounts()),
            #[cfg(feature = "dynamodb")]
            Opened::DynamoDb(tables) => Ok(tables.accounts()),
            _ => Err(unserved(address)),
        }
    }

    /// In memory quotas are counted in this process: where several answer requests, each allows as much as the settings
    /// say.
    pub(crate) fn quotas(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn Quotas>> {
        match self.engine(Part::Quotas, address)? {
            Opened::Memory => Ok(Arc::new(MemoryQuotas::new(Arc::clone(
                &self.settings.clock,
            )))),
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(redis.quotas()),
            _ => Err(unserved(address)),
        }
    }

    /// Windows of clicks outside of the consumers' memory.
    pub(crate) fn click_counters(
        &mut self,
        address: &EngineAddress,
    ) -> PortResult<Arc<dyn ClickCounters>> {
        match self.engine(Part::Counters, address)? {
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(redis.click_counters()),
            _ => Err(unserved(address)),
        }
    }

    /// One server of the cache that processes share.
    pub(crate) fn link_cache(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn LinkCache>> {
        match self.engine(Part::Cache, address)? {
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(redis.link_cache()),
            #[cfg(feature = "memcached")]
            Opened::Memcached(memcached) => Ok(memcached.link_cache()),
            _ => Err(unserved(address)),
        }
    }

    /// The channel by which processes tell each other what they have changed.
    pub(crate) fn invalidations(
        &mut self,
        address: &EngineAddress,
    ) -> PortResult<Arc<dyn Invalidations>> {
        match self.engine(Part::Invalidations, address)? {
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => Ok(database.invalidations()),
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(redis.invalidations()),
            _ => Err(unserved(address)),
        }
    }

    /// Opens one port and drops it: what is wrong with its address shows. Engines over a network are not reached.
    pub(crate) fn check(&mut self, part: Part, address: &EngineAddress) -> PortResult<()> {
        match part {
            Part::Links => self.links(address).map(drop),
            Part::ShardMap => self.shard_maps(address).map(drop),
            Part::Accounts => self.accounts(address).map(drop),
            Part::Clicks => self.clicks(address).map(drop),
            Part::Stream => self.check_stream(address),
            Part::Counters => self.click_counters(address).map(drop),
            Part::Cache => self.link_cache(address).map(drop),
            Part::Invalidations => self.invalidations(address).map(drop),
            Part::Quotas => self.quotas(address).map(drop),
            Part::Keys => self.ledger(address, LedgerForm::Delete).map(drop),
            Part::Pool => self.pool(address, 0, 1).map(drop),
            Part::Leases => self.coordination(address).map(drop),
            Part::Files => self.files(address).map(drop),
            Part::Cursor => self.cursor(address).map(drop),
        }
    }

    /// The clicks database: a file, or connections, of its own, so that nothing else waits for counting (C-2). Called
    /// after [`links`](Self::links).
    pub(crate) fn clicks(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn ClickDatabase>> {
        require(Part::Clicks, address)?;
        match address.kind() {
            EngineKind::Memory => Ok(Arc::new(MemoryClickStore::new())),
            EngineKind::Sqlite => {
                let settings = SqliteSettings {
                    // Positions and salts are all that is looked up: one at a time.
                    readers: NonZeroUsize::MIN,
                    ..self.sqlite_settings()
                };
                let database = Sqlite::open_clicks(address.path(), settings)?;
                let clicks = database.clicks();
                self.opened
                    .push((address.clone(), Opened::Sqlite(database)));
                Ok(clicks)
            }
            #[cfg(feature = "postgres")]
            EngineKind::Postgres => {
                let settings = self.settings.tuning.postgres.clone();
                let connections = self.settings.tuning.click_connections;
                let settings = settings.with_connections(connections);
                let database = Postgres::open(address.secret_text(), &settings)?;
                let clicks = database.clicks();
                self.opened
                    .push((address.clone(), Opened::Postgres(database)));
                self.tables.push((address.clone(), &curt_postgres::CLICKS));
                Ok(clicks)
            }
            #[cfg(feature = "cassandra")]
            EngineKind::Cassandra => {
                let settings = &self.settings.tuning.cassandra;
                let cluster = Cassandra::open(address.secret_text(), settings)?;
                let clicks = cluster.clicks();
                self.opened
                    .push((address.clone(), Opened::Cassandra(cluster)));
                Ok(clicks)
            }
            #[cfg(feature = "dynamodb")]
            EngineKind::DynamoDb => {
                let settings = &self.settings.tuning.dynamodb;
                let tables = DynamoDb::open(address.secret_text(), settings)?;
                let clicks = tables.clicks();
                self.opened
                    .push((address.clone(), Opened::DynamoDb(tables)));
                Ok(clicks)
            }
            _ => Err(unserved(address)),
        }
    }

    /// One shard of the keys database.
    pub(crate) fn ledger(
        &mut self,
        address: &EngineAddress,
        form: LedgerForm,
    ) -> PortResult<Arc<dyn KeyLedger>> {
        match self.engine(Part::Keys, address)? {
            Opened::Memory => Ok(Arc::new(MemoryKeyLedger::new())),
            Opened::Sqlite(database) => database.ledger(form),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                self.tables.push((address.clone(), &curt_postgres::KEYS));
                Ok(database.ledger(form))
            }
            #[cfg(feature = "mysql")]
            Opened::Mysql(database) => database.ledger(form),
            _ => Err(unserved(address)),
        }
    }

    /// The pool shard with this number, which holds at most `cap` keys.
    #[cfg_attr(
        not(feature = "redis"),
        expect(unused_variables, reason = "only Redis has pools")
    )]
    pub(crate) fn pool(
        &mut self,
        address: &EngineAddress,
        shard: usize,
        cap: usize,
    ) -> PortResult<Arc<dyn KeyPool>> {
        match self.engine(Part::Pool, address)? {
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(redis.pool(shard, cap)),
            _ => Err(unserved(address)),
        }
    }

    pub(crate) fn coordination(&mut self, address: &EngineAddress) -> PortResult<Coordination> {
        let opened = self.engine(Part::Leases, address)?;
        let holder = &self.settings.holder;
        match opened {
            Opened::Memory => {
                let clock = || Arc::clone(&self.settings.clock);
                Ok(Coordination {
                    leases: Arc::new(MemoryLeases::new(clock()).for_holder(holder)),
                    heartbeats: Arc::new(MemoryHeartbeats::new(clock())),
                })
            }
            #[cfg(feature = "redis")]
            Opened::Redis(redis) => Ok(Coordination {
                leases: redis.leases(holder),
                heartbeats: redis.heartbeats(),
            }),
            #[cfg(feature = "zookeeper")]
            Opened::ZooKeeper(zookeeper) => Ok(Coordination {
                leases: zookeeper.leases(holder),
                heartbeats: zookeeper.heartbeats(),
            }),
            _ => Err(unserved(address)),
        }
    }

    pub(crate) fn cursor(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn Cursor>> {
        match self.engine(Part::Cursor, address)? {
            Opened::Memory => Ok(Arc::new(MemoryCursor::new())),
            Opened::Sqlite(database) => Ok(database.cursor()),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => {
                let set = match database.is_distributed() {
                    true => &curt_postgres::DISTRIBUTED_LINKS,
                    false => &curt_postgres::CURSORS,
                };
                self.tables.push((address.clone(), set));
                Ok(database.cursor())
            }
            #[cfg(feature = "zookeeper")]
            Opened::ZooKeeper(zookeeper) => Ok(zookeeper.cursor()),
            #[cfg(feature = "cassandra")]
            Opened::Cassandra(cluster) => Ok(cluster.cursor()),
            #[cfg(feature = "dynamodb")]
            Opened::DynamoDb(tables) => Ok(tables.cursor()),
            _ => Err(unserved(address)),
        }
    }

    pub(crate) fn files(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn KeyFile>> {
        match self.engine(Part::Files, address)? {
            Opened::Memory => Ok(Arc::new(MemoryKeyFile::new())),
            #[cfg(feature = "objects")]
            Opened::Files(files) => Ok(files),
            _ => Err(unserved(address)),
        }
    }
}
