//! How many redirects a connection was answered with, and which of them the store was asked for.

use curt_core::ServedLink;
use tokio::time::Instant;

/// A link from the store, and when it was asked for.
pub(super) struct LoadedLink {
    pub(super) link: ServedLink,
    pub(super) asked: Instant,
}

/// Redirects that one read of a connection is answered with.
#[derive(Default)]
pub(super) struct RedirectCounts {
    /// From the cache.
    pub(super) hits: u64,
    /// When the store was asked for the first one's link, if it was.
    pub(super) asked: Option<Instant>,
}

impl RedirectCounts {
    pub(super) fn count_hit(&mut self, link: ServedLink) -> ServedLink {
        self.hits += 1;
        link
    }

    pub(super) fn count_loaded(&mut self, loaded: LoadedLink) -> ServedLink {
        self.asked = Some(loaded.asked);
        loaded.link
    }
}
