use std::sync::Arc;

use curt_core::clock::Clock;
use curt_core::ports::{Cursor, Heartbeats, KeyFile, KeyLedger, KeyPool, Leases, LinkPorts};
use curt_core::{ErrorKind, PortError, PortResult};

/// The engines behind the supply. A strategy uses those that it needs.
#[derive(Clone)]
pub struct KeyPorts {
    /// Shards of the keys database; a key's home is the one that its hash names.
    pub ledgers: Vec<Arc<dyn KeyLedger>>,
    /// Shards of the pool. Empty: the buffer is fed straight from the ledgers.
    pub pools: Vec<Arc<dyn KeyPool>>,
    /// `None` in a process that only makes or moves keys and does not use the links database.
    pub links: Option<LinkPorts>,
    pub files: Option<Arc<dyn KeyFile>>,
    pub cursor: Arc<dyn Cursor>,
    pub leases: Arc<dyn Leases>,
    pub heartbeats: Arc<dyn Heartbeats>,
    pub clock: Arc<dyn Clock>,
    /// How this process describes itself to people.
    pub who: Box<str>,
}

impl KeyPorts {
    pub(crate) fn links(&self) -> PortResult<&LinkPorts> {
        self.links.as_ref().ok_or_else(|| {
            let detail = "this process does not use the links database";
            let kind = ErrorKind::Unavailable;
            PortError::new(kind, "key supply", "look at links", detail)
        })
    }
}
