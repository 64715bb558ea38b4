//! What becomes of the links of a user who leaves.

use curt_core::limits::PAGE_LINKS_MAX;
use curt_core::ports::{ChangeReply, ListQuery};
use curt_core::{EffectiveState, ErrorKind, Link, OwnerId, PortError, PortResult};
use tokio::task::JoinSet;

use super::change_after;
use crate::Links;
use crate::error::LinkError;
use crate::invalidate::WriteOutcome;

/// Passes over the list, which may grow while the user is not kept out everywhere.
const PASSES_MAX: usize = 16;

/// What is done with each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinksOfLeaver {
    HandOver(OwnerId),
    Delete,
}

impl Links {
    /// Whether the user owns any link that is not a tombstone.
    pub async fn owns_any(&self, owner: OwnerId) -> Result<bool, LinkError> {
        let mut query = ListQuery {
            owner: Some(owner),
            limit: 1,
            ..ListQuery::default()
        };
        loop {
            let page = self.ports.index.list(&query).await?;
            if !page.links.is_empty() || page.next.is_none() {
                return Ok(!page.links.is_empty());
            }
            query.cursor = page.next;
        }
    }

    /// Hands over or deletes every link of a user, and returns how many. What the user had deleted goes for good, whatever
    /// is said about the others. Called again after a crash, it goes on.
    pub async fn clear_out(
        &self,
        owner: OwnerId,
        links: Option<LinksOfLeaver>,
    ) -> Result<u64, LinkError> {
        let mut changed = 0;
        for _ in 0..PASSES_MAX {
            // An administrator could restore them, and nobody would own them.
            let delete = LinksOfLeaver::Delete;
            let mut pass = self
                .pass_over(owner, delete, Some(EffectiveState::Deleted))
                .await?;
            if let Some(links) = links {
                let moved = self.pass_over(owner, links, None).await?;
                changed += moved;
                pass += moved;
            }
            if pass == 0 {
                break;
            }
        }
        Ok(changed)
    }

    async fn pass_over(
        &self,
        owner: OwnerId,
        links: LinksOfLeaver,
        state: Option<EffectiveState>,
    ) -> Result<u64, LinkError> {
        let mut query = ListQuery {
            owner: Some(owner),
            state,
            limit: PAGE_LINKS_MAX,
            ..ListQuery::default()
        };
        let mut changed = 0;
        loop {
            let page = self.ports.index.list(&query).await?;
            // Together, so that they share commits.
            let replies = page.links.iter().map(|link| self.leave(link, links));
            for reply in join_all(replies).await {
                // A link that was changed in between is met again in the next pass.
                changed += u64::from(matches!(reply?, ChangeReply::Changed(_)));
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(changed);
            }
        }
    }

    fn leave(
        &self,
        link: &Link,
        links: LinksOfLeaver,
    ) -> impl Future<Output = PortResult<ChangeReply>> + Send + 'static {
        let (store, resolver) = (self.ports.store.clone(), self.resolver.clone());
        let (id, seen, now) = (link.id.clone(), link.revision, self.clock.now());
        async move {
            let reply = match links {
                LinksOfLeaver::HandOver(heir) => store.hand_over_at(&id, seen, heir, now).await,
                LinksOfLeaver::Delete => store.delete_at(&id, seen, now).await,
            };
            let changes = vec![change_after(&id, seen)];
            resolver.invalidate(&changes);
            let outcome = match reply {
                Ok(_) => WriteOutcome::Changed,
                Err(_) => WriteOutcome::Unknown,
            };
            resolver.publish(changes, outcome).await;
            reply
        }
    }
}

/// Runs the calls at the same time. The caller runs to completion: what is written must be invalidated.
async fn join_all<F>(calls: impl Iterator<Item = F>) -> Vec<PortResult<ChangeReply>>
where
    F: Future<Output = PortResult<ChangeReply>> + Send + 'static,
{
    let mut running: JoinSet<_> = calls.collect();
    let mut replies = Vec::with_capacity(running.len());
    while let Some(reply) = running.join_next().await {
        replies.push(reply.unwrap_or_else(|died| {
            let what = "a write broke off; please report this";
            Err(PortError::new(ErrorKind::Bug, "links", "clear out links", what).with_source(died))
        }));
    }
    replies
}
