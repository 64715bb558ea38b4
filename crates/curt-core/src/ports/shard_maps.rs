use std::time::Duration;

use async_trait::async_trait;

use crate::error::PortResult;
use crate::placement::ShardMap;

/// The map of shards to nodes that all processes go by.
#[async_trait]
pub trait ShardMaps: MapNotes {
    /// Returns the newest map. Absent: [`ShardMap::default`], whose version is 0.
    async fn load(&self) -> PortResult<ShardMap>;

    /// Returns the newest map as soon as its version is greater than `seen`, and `None` when that has not come to be
    /// within `wait`. Versions that follow each other quickly may be left out.
    async fn watch(&self, seen: u64, wait: Duration) -> PortResult<Option<ShardMap>>;

    /// Stores `next`, durably, if it follows the newest map by its version, and says whether it did. Timed out: unknown;
    /// load and look. Called twice: the second is refused.
    async fn advance(&self, next: &ShardMap) -> PortResult<bool>;
}

/// Texts that change by compare-and-set.
#[async_trait]
pub trait MapNotes: Send + Sync {
    /// Returns what is noted under `name`. Absent: [`MapNote::default`], whose version is 0.
    async fn note(&self, name: &str) -> PortResult<MapNote>;

    /// Stores `note` under `name`, durably, if it follows the stored one by its version, and says whether it did. Timed
    /// out: unknown; read and look. Called twice: the second is refused.
    async fn put_note(&self, name: &str, note: &MapNote) -> PortResult<bool>;
}

/// A text that belongs to the shard map, or to the database: its nodes, a move or a copy under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapNote {
    pub version: u64,
    pub text: String,
}

impl MapNote {
    /// The note that follows this one.
    #[must_use]
    pub fn followed_by(&self, text: String) -> Self {
        let version = self.version + 1;
        Self { version, text }
    }
}
