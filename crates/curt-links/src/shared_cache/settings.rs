use std::time::Duration;

/// Which of the servers that hold a link is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheBalance {
    /// The faster of two that are drawn.
    #[default]
    PowerOfTwo,
    /// One after the other.
    RoundRobin,
}

#[derive(Clone, Debug)]
pub struct SharedCacheSettings {
    /// Servers that hold each link.
    pub replicas: usize,
    /// Points of each server on the ring.
    pub virtual_nodes: u32,
    /// How long an entry is kept: the longest that a change can go unnoticed which neither the servers nor the channel of
    /// invalidations were told.
    pub ttl: Duration,
    /// For a look or a fill at one server; invalidations have five times as long.
    pub deadline: Duration,
    pub balance: CacheBalance,
}

impl Default for SharedCacheSettings {
    fn default() -> Self {
        Self {
            replicas: 2,
            virtual_nodes: 100,
            ttl: Duration::from_secs(60),
            deadline: Duration::from_millis(10),
            balance: CacheBalance::default(),
        }
    }
}
