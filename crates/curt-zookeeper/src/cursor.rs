use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::Cursor;
use curt_core::{ErrorKind, PortError, PortResult};

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
        let moved = self
            .zookeeper
            .replace(&client, &path, version, data.as_bytes());
        self.zookeeper.in_time(OP, moved).await
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
