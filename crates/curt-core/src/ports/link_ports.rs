use std::sync::Arc;

use super::{Idempotency, LinkHomes, LinkIndex, LinkStore, LinkTotals, SeededLinks};

/// An engine that serves every port of links that has to be served.
pub trait LinkDatabase: LinkStore + LinkIndex + LinkTotals + Idempotency {}

impl<T: LinkStore + LinkIndex + LinkTotals + Idempotency + ?Sized> LinkDatabase for T {}

/// One that serves the optional port, too.
pub trait SeededDatabase: LinkDatabase + SeededLinks {}

impl<T: LinkDatabase + SeededLinks + ?Sized> SeededDatabase for T {}

/// The ports of links, whichever engine serves each.
#[derive(Clone)]
pub struct LinkPorts {
    pub store: Arc<dyn LinkStore>,
    pub index: Arc<dyn LinkIndex>,
    pub totals: Arc<dyn LinkTotals>,
    pub idempotency: Arc<dyn Idempotency>,
    /// `None`: the `claim` strategy cannot be used.
    pub seeded: Option<Arc<dyn SeededLinks>>,
    /// `None`: all links are written at one node.
    pub homes: Option<Arc<dyn LinkHomes>>,
    /// The index of each node, where there are several: what the purge works on at once. Empty: `index` is that of the one.
    pub nodes: Vec<Arc<dyn LinkIndex>>,
}

impl<T: SeededDatabase + 'static> From<Arc<T>> for LinkPorts {
    fn from(database: Arc<T>) -> Self {
        Self::from(database as Arc<dyn SeededDatabase>)
    }
}

impl From<Arc<dyn SeededDatabase>> for LinkPorts {
    fn from(database: Arc<dyn SeededDatabase>) -> Self {
        Self {
            store: database.clone(),
            index: database.clone(),
            totals: database.clone(),
            idempotency: database.clone(),
            seeded: Some(database),
            homes: None,
            nodes: Vec::new(),
        }
    }
}
