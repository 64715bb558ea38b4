//! All links, to be copied to another database or from one.
//!
//! Sums of released keys, which others keep by shard, are kept by key here. Those that were imported have rows of their
//! own among the links.
//!
//! Nothing here can tell what changes while it is read: a source must be at rest.

mod export;
mod import;
mod released;
mod requests;

use async_trait::async_trait;
use curt_core::ports::{
    FollowedChanges, ImportReport, LinkItem, LinkTransfer, ShardItem, StoredRow, Transfer,
    TransferPart,
};
use curt_core::{ErrorKind, Link, LinkId, LinkState, PortError, PortResult};

use super::WideLinks;
use super::record::{FORMER, Stored, StoredLink};

const OP_EXPORT: &str = "export links";
const OP_IMPORT: &str = "import links";

#[async_trait]
impl Transfer<LinkItem> for WideLinks {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        self.export(after).await
    }

    async fn import_all(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        self.import(items).await
    }
}

#[async_trait]
impl LinkTransfer for WideLinks {
    async fn follow_changes(&self, _follower: u64) -> PortResult<()> {
        Err(self.unfollowed())
    }

    async fn followed_changes(&self, _follower: u64) -> PortResult<FollowedChanges> {
        Err(self.unfollowed())
    }

    async fn forget_followed(&self, _numbers: &[i64]) -> PortResult<()> {
        Err(self.unfollowed())
    }

    /// Nothing was ever remembered.
    async fn stop_following(&self, _follower: Option<u64>) -> PortResult<()> {
        Ok(())
    }
}

impl WideLinks {
    fn unfollowed(&self) -> PortError {
        let detail = format!(
            "{} does not tell what changes: stop the servers that write to it, and copy without --follow",
            self.deadlines.address
        );
        let backend = self.deadlines.backend;
        PortError::new(ErrorKind::Invalid, backend, "follow changes", detail)
    }
}

/// What a key's row says, as it is copied.
fn item_of(id: &LinkId, stored: Option<Stored>) -> ShardItem {
    let (stored, former_generation) = match stored {
        None => (None, None),
        Some(Stored::Released { generation, .. }) => (None, Some(generation)),
        Some(Stored::Link(row)) => {
            let former = former_generation(&row);
            (Some(Box::new(row_of(*row))), former)
        }
    };
    ShardItem::Link {
        id: id.clone(),
        stored,
        former_generation,
    }
}

fn former_generation(row: &StoredLink) -> Option<u32> {
    match row.released.get(&FORMER) {
        Some(noted) => u32::try_from(*noted).ok().filter(|former| *former > 0),
        None => usual_former_generation(&row.link),
    }
}

/// The generation of the link before, as it follows from the row's: a seed has that of the link before it.
fn usual_former_generation(link: &Link) -> Option<u32> {
    let generation = link.revision.generation;
    let former = match link.state {
        LinkState::Seeded => generation,
        _ => generation.saturating_sub(1),
    };
    (former > 0).then_some(former)
}

fn row_of(row: StoredLink) -> StoredRow {
    StoredRow {
        link: row.link,
        was_permanent: row.was_permanent,
        clicks_spent: row.spent,
        token: row.token,
    }
}
