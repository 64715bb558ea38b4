use async_trait::async_trait;
use curt_core::ports::{LinkCounts, LinkTotals};
use curt_core::{KeyOrigin, PortResult};
use futures_util::future::join_all;

use crate::router::ShardRouter;

#[async_trait]
impl LinkTotals for ShardRouter {
    async fn counts(&self) -> PortResult<LinkCounts> {
        let routing = self.routing().await?;
        let counts = self.all_ports(&routing).await.into_iter();
        let counts = counts.map(|(node, ports)| async move {
            let counts = match ports {
                Ok(ports) => ports.counts().await,
                Err(error) => Err(error),
            };
            (node, counts)
        });
        let mut sum = LinkCounts::default();
        for (node, counts) in join_all(counts).await {
            add(
                &mut sum,
                &counts.map_err(|error| self.at_node(node, error))?,
            );
        }
        Ok(sum)
    }
}

fn add(sum: &mut LinkCounts, part: &LinkCounts) {
    let created = |origin| {
        let count = sum.created_from(origin) + part.created_from(origin);
        (origin, count)
    };
    sum.created = KeyOrigin::ALL.map(created).to_vec();
    sum.live += part.live;
    sum.deleted += part.deleted;
    sum.deleted_from_ledger += part.deleted_from_ledger;
    sum.released_from_ledger += part.released_from_ledger;
    sum.seeded += part.seeded;
    sum.lag = sum.lag.max(part.lag);
}
