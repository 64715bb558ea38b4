use async_trait::async_trait;

use crate::error::PortResult;
use crate::key::LinkId;
use crate::link::Link;

/// Rows made ahead of time for the `claim` strategy. An engine may do without: it needs row locks that others skip.
#[async_trait]
pub trait SeededLinks: Send + Sync {
    /// Inserts free rows ahead of time for the `claim` strategy; ids that exist are skipped. Returns how many were new.
    /// A row has the generation of the last link that had its key and was released, and 0 if there was none.
    async fn seed(&self, ids: &[LinkId]) -> PortResult<u64>;

    /// Gives each of `links` the key of a different seeded row and returns the links as stored, in order; `link.id.key`
    /// and `link.revision` of the input are ignored, and the stored generation is one more than the row's. Fewer
    /// results than links when the seeds run out: the first ones were served. Called twice: claims twice.
    async fn claim(&self, links: Vec<Link>) -> PortResult<Vec<Link>>;
}
