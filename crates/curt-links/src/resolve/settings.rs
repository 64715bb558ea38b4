use std::time::Duration;

#[derive(Clone, Debug)]
pub struct ResolverSettings {
    /// Memory for cached links, everything included.
    pub cache_bytes: u64,
    /// Most entries of the negative cache.
    pub negative_entries: usize,
    /// How long such an entry is used, from the beginning of its load; at most
    /// [`NEGATIVE_TTL_MAX`](super::NEGATIVE_TTL_MAX).
    pub negative_ttl: Duration,
    /// How long a cached link may be served, from the beginning of its load. `None` only where every write passes through
    /// this process.
    pub entry_ttl: Option<Duration>,
    /// The same while the channel of invalidations is known to work. `None`: no longer.
    pub confirmed_ttl: Option<Duration>,
    /// Most loads from the store at the same time.
    pub loads_max: usize,
    /// How long a load may wait for its turn before the request is turned away.
    pub load_wait_max: Duration,
    /// Whether a private link that leads nowhere is [absent](super::Resolution::Absent), like one that never was, and not
    /// gone or blocked.
    pub hides_private: bool,
    /// How long links stay after their end: those that ended later are not reported for purging.
    pub grace: Duration,
}

impl Default for ResolverSettings {
    fn default() -> Self {
        Self {
            cache_bytes: 256 * 1_024 * 1_024,
            negative_entries: 65_536,
            negative_ttl: Duration::from_secs(2),
            entry_ttl: None,
            confirmed_ttl: None,
            loads_max: 256,
            load_wait_max: Duration::from_millis(500),
            hides_private: false,
            grace: Duration::ZERO,
        }
    }
}
