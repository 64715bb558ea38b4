use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{MapNote, MapNotes, ShardMaps};
use curt_core::{ErrorKind, PortError, PortResult, ShardMap};

use super::nodes::read;
use super::{BACKEND, ZooKeeper};

/// The map as the text of one node.
pub(super) struct ZooKeeperShardMaps {
    zookeeper: Arc<ZooKeeper>,
    path: String,
}

impl ZooKeeperShardMaps {
    pub(super) fn new(zookeeper: Arc<ZooKeeper>) -> Self {
        let path = format!("{}/shard-map", zookeeper.root);
        Self { zookeeper, path }
    }

    /// The newest map, and the version of its node if there is one.
    async fn find(&self, op: &'static str) -> PortResult<(ShardMap, Option<i32>)> {
        let client = self.zookeeper.session(op).await?;
        let found = read(&client, &self.path);
        match self.zookeeper.in_time(op, found).await? {
            None => Ok((ShardMap::default(), None)),
            Some((data, stat)) => {
                let map = str::from_utf8(&data).ok().and_then(ShardMap::of_text);
                let detail = "the node does not hold a shard map of this version";
                let corrupt = || PortError::new(ErrorKind::Corrupt, BACKEND, op, detail);
                Ok((map.ok_or_else(corrupt)?, Some(stat.version)))
            }
        }
    }
}

impl ZooKeeperShardMaps {
    fn note_path(&self, name: &str) -> String {
        format!("{}-{name}", self.path)
    }

    /// A note, its version on the first line, and the version of its node if there is one.
    async fn find_note(&self, op: &'static str, name: &str) -> PortResult<(MapNote, Option<i32>)> {
        let client = self.zookeeper.session(op).await?;
        let path = self.note_path(name);
        let Some((data, stat)) = self.zookeeper.in_time(op, read(&client, &path)).await? else {
            return Ok((MapNote::default(), None));
        };
        let note = str::from_utf8(&data).ok().and_then(|text| {
            let (version, text) = text.split_once('\n')?;
            Some(MapNote {
                version: version.parse().ok()?,
                text: text.to_owned(),
            })
        });
        let detail = "the node does not hold a note of this version";
        let corrupt = || PortError::new(ErrorKind::Corrupt, BACKEND, op, detail);
        Ok((note.ok_or_else(corrupt)?, Some(stat.version)))
    }
}

#[async_trait]
impl ShardMaps for ZooKeeperShardMaps {
    async fn load(&self) -> PortResult<ShardMap> {
        Ok(self.find("load the shard map").await?.0)
    }

    async fn watch(&self, seen: u64, wait: Duration) -> PortResult<Option<ShardMap>> {
        const OP: &str = "watch the shard map";
        let newer = async {
            loop {
                let client = self.zookeeper.session(OP).await?;
                let watched = client.check_and_watch_stat(&self.path);
                let (_, watcher) = self.zookeeper.in_time(OP, watched).await?;
                // Looked at after the watch was set, so that no change falls between them.
                let (map, _) = self.find(OP).await?;
                if map.version() > seen {
                    return Ok(map);
                }
                watcher.changed().await;
            }
        };
        match tokio::time::timeout(wait, newer).await {
            Ok(newer) => newer.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn advance(&self, next: &ShardMap) -> PortResult<bool> {
        const OP: &str = "advance the shard map";
        let (newest, version) = self.find(OP).await?;
        if newest.version() + 1 != next.version() {
            return Ok(false);
        }
        let client = self.zookeeper.session(OP).await?;
        let text = next.to_text();
        let moved = self
            .zookeeper
            .replace(&client, &self.path, version, text.as_bytes());
        self.zookeeper.in_time(OP, moved).await
    }
}

#[async_trait]
impl MapNotes for ZooKeeperShardMaps {
    async fn note(&self, name: &str) -> PortResult<MapNote> {
        Ok(self
            .find_note("read a note of the shard map", name)
            .await?
            .0)
    }

    async fn put_note(&self, name: &str, note: &MapNote) -> PortResult<bool> {
        const OP: &str = "write a note of the shard map";
        let (stored, version) = self.find_note(OP, name).await?;
        if stored.version + 1 != note.version {
            return Ok(false);
        }
        let client = self.zookeeper.session(OP).await?;
        let (path, text) = (
            self.note_path(name),
            format!("{}\n{}", note.version, note.text),
        );
        let moved = self
            .zookeeper
            .replace(&client, &path, version, text.as_bytes());
        self.zookeeper.in_time(OP, moved).await
    }
}
