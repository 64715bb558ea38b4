use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;
use crate::link::KeyOrigin;

/// How many links there are.
#[async_trait]
pub trait LinkTotals: Send + Sync {
    /// Totals, kept up to date by every write so that asking costs nothing at any size. They may lag behind the links
    /// where an engine adds up in the background; the answer says by how much.
    async fn counts(&self) -> PortResult<LinkCounts>;
}

/// Totals over all time and of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Links ever created, by the origin of their key; tombstones stay in the sum.
    pub created: Vec<(KeyOrigin, u64)>,
    /// Links that are neither deleted nor tombstones nor seeded rows.
    pub live: u64,
    /// Deleted links and tombstones.
    pub deleted: u64,
    /// Those whose key came from the ledger: the `quarantined` of K-2.
    pub deleted_from_ledger: u64,
    /// Tombstones removed by `release` whose key came from the ledger.
    pub released_from_ledger: u64,
    /// Seeded rows that nobody has claimed.
    pub seeded: u64,
    /// How old the totals may be; zero where every write moves them.
    pub lag: Duration,
}

impl LinkCounts {
    #[must_use]
    pub fn created_from(&self, origin: KeyOrigin) -> u64 {
        self.created
            .iter()
            .filter(|(from, _)| *from == origin)
            .map(|(_, count)| count)
            .sum()
    }
}
