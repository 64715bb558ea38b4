//! The whole database, to be copied to another one or from one.

mod export;
mod follow;
mod import;
mod sql;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{
    FollowedChanges, ImportReport, LinkItem, LinkTransfer, Transfer, TransferPart,
};

use super::PostgresLinks;

/// Rows of a part, and changes that are read at once.
const ROWS_AT_ONCE: usize = 1_000;
const LIMIT: i64 = 1_000;

#[async_trait]
impl Transfer<LinkItem> for PostgresLinks {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        export::export(&*self.background().await?, after).await
    }

    async fn import_all(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        import::import(&*self.background().await?, &self.map, items).await
    }
}

#[async_trait]
impl LinkTransfer for PostgresLinks {
    async fn follow_changes(&self, follower: u64) -> PortResult<()> {
        follow::follow(&*self.background().await?, follower).await
    }

    async fn followed_changes(&self, follower: u64) -> PortResult<FollowedChanges> {
        follow::changes(&*self.background().await?, follower).await
    }

    async fn forget_followed(&self, numbers: &[i64]) -> PortResult<()> {
        follow::forget(&*self.background().await?, numbers).await
    }

    async fn stop_following(&self, follower: Option<u64>) -> PortResult<()> {
        follow::stop(&*self.background().await?, follower).await
    }
}
