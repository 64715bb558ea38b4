//! Nodes of every engine, and routers over them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use curt_core::Placement;
use curt_core::ports::{LinkShards, ShardMaps};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_postgres::{LINKS, Postgres, PostgresSettings, SHARD_MAP};
use curt_shards::{ShardNode, ShardRouter};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::engines::postgres::{Database, Server};

pub(crate) const MODULO: Placement = Placement::Modulo;
pub(crate) const RING: Placement = Placement::Ring { virtual_nodes: 64 };
pub(crate) const RANGE: Placement = Placement::Range;

pub(crate) fn named(nodes: Vec<Arc<dyn LinkShards>>) -> Vec<ShardNode> {
    let name = |(index, node)| ShardNode::new(format!("node {index}"), node);
    nodes.into_iter().enumerate().map(name).collect()
}

pub(crate) fn over(
    nodes: Vec<Arc<dyn LinkShards>>,
    maps: Arc<dyn ShardMaps>,
    placement: Placement,
) -> Arc<ShardRouter> {
    ShardRouter::new(named(nodes), maps, placement)
}

pub(crate) fn in_memory(count: usize, placement: Placement) -> Arc<ShardRouter> {
    let node = |_| Arc::new(MemoryLinkStore::new()) as Arc<dyn LinkShards>;
    let nodes = (0..count).map(node).collect();
    over(nodes, Arc::new(MemoryShardMaps::new()), placement)
}

/// The map is in the first file.
pub(crate) fn in_files(folder: &Path, count: usize, placement: Placement) -> Arc<ShardRouter> {
    let settings = SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    };
    let file = |n| Sqlite::open(folder.join(format!("{n}.db")), settings.clone()).unwrap();
    let files: Vec<_> = (0..count).map(file).collect();
    let maps = files[0].shard_maps();
    over(files.iter().map(Sqlite::shards).collect(), maps, placement)
}

/// Four databases with the tables of nodes.
pub(crate) fn databases(server: &Arc<Server>) -> [Database; 4] {
    let make_tables = async |url: String| {
        let node = Postgres::open(&url, &settings())?;
        node.migrate(&LINKS).await?;
        node.migrate(&SHARD_MAP).await?;
        Ok(())
    };
    server.copies("shard", make_tables).unwrap()
}

/// The map is in the first database.
pub(crate) fn in_databases(urls: &[String], placement: Placement) -> Arc<ShardRouter> {
    let open = |url: &String| Postgres::open(url, &settings()).unwrap();
    let databases: Vec<_> = urls.iter().map(open).collect();
    let maps = databases[0].shard_maps();
    let nodes = databases.iter().map(Postgres::shards).collect();
    over(nodes, maps, placement)
}

pub(crate) fn settings() -> PostgresSettings {
    PostgresSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    }
}
