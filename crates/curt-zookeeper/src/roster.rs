use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{Member, Roster};
use zookeeper_client::{Client, CreateMode, Error};

use super::ZooKeeper;
use super::nodes::{read, segment};

/// Members as ephemeral nodes: each is there for as long as its session, whatever the `ttl` says. The data is the
/// member's name, a space and what it says.
pub(super) struct ZooKeeperRoster {
    zookeeper: Arc<ZooKeeper>,
}

impl ZooKeeperRoster {
    pub(super) fn new(zookeeper: Arc<ZooKeeper>) -> Self {
        Self { zookeeper }
    }

    fn folder(&self) -> String {
        format!("{}/roster", self.zookeeper.root)
    }

    fn path(&self, member: &str) -> String {
        format!("{}/{}", self.folder(), segment(member))
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

    async fn list(&self, client: &Client) -> Result<Vec<Member>, Error> {
        let folder = self.folder();
        let names = match client.list_children(&folder).await {
            Err(Error::NoNode) => return Ok(Vec::new()),
            names => names?,
        };
        let mut members = Vec::with_capacity(names.len());
        for name in names {
            // It may have left since.
            if let Some((data, _)) = read(client, &format!("{folder}/{name}")).await? {
                let text = String::from_utf8_lossy(&data);
                let (name, says) = text.split_once(' ').unwrap_or((&text, ""));
                members.push(Member {
                    name: name.into(),
                    says: says.into(),
                });
            }
        }
        members.sort_unstable();
        Ok(members)
    }
}

#[async_trait]
impl Roster for ZooKeeperRoster {
    async fn announce(&self, member: &str, says: &str, _ttl: Duration) -> PortResult<()> {
        const OP: &str = "announce a process";
        let client = self.zookeeper.session(OP).await?;
        let (path, data) = (self.path(member), format!("{member} {says}"));
        let written = self.write(&client, &path, data.as_bytes());
        self.zookeeper.in_time(OP, written).await
    }

    async fn leave(&self, member: &str) -> PortResult<()> {
        const OP: &str = "take a process off";
        let client = self.zookeeper.session(OP).await?;
        let path = self.path(member);
        let deleted = async {
            match client.delete(&path, None).await {
                Err(Error::NoNode) => Ok(()),
                deleted => deleted,
            }
        };
        self.zookeeper.in_time(OP, deleted).await
    }

    async fn members(&self) -> PortResult<Vec<Member>> {
        const OP: &str = "list processes";
        let client = self.zookeeper.session(OP).await?;
        self.zookeeper.in_time(OP, self.list(&client)).await
    }
}
