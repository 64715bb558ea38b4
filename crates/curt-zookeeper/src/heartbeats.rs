use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{HeartbeatRecord, Heartbeats};
use zookeeper_client::{Client, CreateMode, Error};

use super::ZooKeeper;
use super::nodes::{read, segment};

/// Heartbeats as ephemeral nodes: each lasts as long as its session, whatever the `ttl`. The data is the instance's name, a
/// space and its text.
pub(super) struct ZooKeeperHeartbeats {
    zookeeper: Arc<ZooKeeper>,
}

impl ZooKeeperHeartbeats {
    pub(super) fn new(zookeeper: Arc<ZooKeeper>) -> Self {
        Self { zookeeper }
    }

    fn folder(&self) -> String {
        format!("{}/heartbeats", self.zookeeper.root)
    }

    fn path(&self, instance: &str) -> String {
        format!("{}/{}", self.folder(), segment(instance))
    }

    async fn write(&self, client: &Client, path: &str, data: &[u8]) -> Result<(), Error> {
        match client.set_data(path, data, None).await {
            Err(Error::NoNode) => {}
            done => return done.map(drop),
        }
        let made = self
            .zookeeper
            .create(client, path, data, CreateMode::Ephemeral)
            .await;
        made.map(drop)
    }

    async fn list(&self, client: &Client) -> Result<Vec<HeartbeatRecord>, Error> {
        let folder = self.folder();
        let names = match client.list_children(&folder).await {
            Err(Error::NoNode) => return Ok(Vec::new()),
            names => names?,
        };
        let mut records = Vec::with_capacity(names.len());
        for name in names {
            // It may have left since.
            if let Some((data, _)) = read(client, &format!("{folder}/{name}")).await? {
                let text = String::from_utf8_lossy(&data);
                let (instance, text) = text.split_once(' ').unwrap_or((&text, ""));
                records.push(HeartbeatRecord {
                    instance: instance.into(),
                    text: text.into(),
                });
            }
        }
        records.sort_unstable();
        Ok(records)
    }
}

#[async_trait]
impl Heartbeats for ZooKeeperHeartbeats {
    async fn beat(&self, instance: &str, text: &str, _ttl: Duration) -> PortResult<()> {
        const OP: &str = "write a heartbeat";
        let client = self.zookeeper.session(OP).await?;
        let (path, data) = (self.path(instance), format!("{instance} {text}"));
        let written = self.write(&client, &path, data.as_bytes());
        self.zookeeper.in_time(OP, written).await
    }

    async fn remove(&self, instance: &str) -> PortResult<()> {
        const OP: &str = "remove a heartbeat";
        let client = self.zookeeper.session(OP).await?;
        let path = self.path(instance);
        let deleted = async {
            match client.delete(&path, None).await {
                Err(Error::NoNode) => Ok(()),
                deleted => deleted,
            }
        };
        self.zookeeper.in_time(OP, deleted).await
    }

    async fn records(&self) -> PortResult<Vec<HeartbeatRecord>> {
        const OP: &str = "list heartbeats";
        let client = self.zookeeper.session(OP).await?;
        self.zookeeper.in_time(OP, self.list(&client)).await
    }
}
