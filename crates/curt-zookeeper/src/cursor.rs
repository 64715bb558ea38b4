use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::Cursor;
use curt_core::{ErrorKind, PortError, PortResult};
use zookeeper_client::{CreateMode, Error};

use super::nodes::{read, segment};
use super::{BACKEND, ZooKeeper};

/// Numbers as nodes. The version that was read makes the write conditional.
pub(super) struct ZooKeeperCursor {
    zookeeper: Arc<ZooKeeper>,
}

impl ZooKeeperCursor {
    pub(super) fn new(zookeeper: Arc<ZooKeeper>) -> Self {
        Self { zookeeper }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/cursors/{}", self.zookeeper.root, segment(name))
    }
}

#[async_trait]
impl Cursor for ZooKeeperCursor {
    async fn get(&self, name: &str) -> PortResult<u64> {
        const OP: &str = "read a cursor";
        let client = self.zookeeper.session(OP).await?;
        let path = self.path(name);
        match self.zookeeper.in_time(OP, read(&client, &path)).await? {
            None => Ok(0),
            Some((data, _)) => number(OP, &data),
        }
    }

    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool> {
        const OP: &str = "move a cursor";
        let client = self.zookeeper.session(OP).await?;
        let path = self.path(name);
        let found = self.zookeeper.in_time(OP, read(&client, &path)).await?;
        let (before, version) = match &found {
            None => (0, None),
            Some((data, stat)) => (number(OP, data)?, Some(stat.version)),
        };
        if before != seen {
            return Ok(false);
        }
        let data = next.to_string();
        let written = async {
            match version {
                None => {
                    let mode = CreateMode::Persistent;
                    let made = self.zookeeper.create(&client, &path, data.as_bytes(), mode);
                    made.await.map(drop)
                }
                Some(version) => {
                    let set = client.set_data(&path, data.as_bytes(), Some(version));
                    set.await.map(drop)
                }
            }
        };
        let outcome = async {
            match written.await {
                Ok(()) => Ok(true),
                // Somebody else was quicker.
                Err(Error::BadVersion | Error::NodeExists) => Ok(false),
                Err(error) => Err(error),
            }
        };
        self.zookeeper.in_time(OP, outcome).await
    }
}

fn number(op: &'static str, data: &[u8]) -> PortResult<u64> {
    let digits = str::from_utf8(data).ok();
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| {
            let detail = format!("a cursor holds {:?}", String::from_utf8_lossy(data));
            PortError::new(ErrorKind::Corrupt, BACKEND, op, detail)
        })
}
