//! The same change to many links.

use curt_core::LinkState;
use futures_util::{StreamExt, stream};

use super::{TagChange, Who};
use crate::Links;
use crate::admit::{EditLink, Expiry};
use crate::error::LinkError;

/// Links that are written at the same time, so that they share commits.
const WRITES_MAX: usize = 64;

/// What is to become of each of many links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinksChange {
    Tag(TagChange),
    Expire(Expiry),
    Delete,
    Restore,
    /// For administrators.
    Switch(LinkState),
}

impl Links {
    /// Changes each of the links. One outcome per key, in order: a link that is refused does not hold up the others.
    pub(crate) async fn change_many(
        &self,
        who: Who,
        keys: &[String],
        change: &LinksChange,
    ) -> Vec<Result<(), LinkError>> {
        let mut changes = Vec::with_capacity(keys.len());
        for key in keys {
            changes.push(self.change_one(who, key, change));
        }
        stream::iter(changes).buffered(WRITES_MAX).collect().await
    }

    async fn change_one(&self, who: Who, key: &str, change: &LinksChange) -> Result<(), LinkError> {
        match change {
            LinksChange::Tag(change) => self.change_tags(who, key, change).await.map(drop),
            LinksChange::Expire(expiry) => {
                let edit = EditLink {
                    expires_at: Some(*expiry),
                    ..EditLink::default()
                };
                self.edit(who, key, None, edit).await.map(drop)
            }
            LinksChange::Delete => self.delete(who, key, None).await,
            LinksChange::Restore => self.restore(who, key, None, None).await.map(drop),
            LinksChange::Switch(LinkState::Disabled) => self.disable(key).await.map(drop),
            LinksChange::Switch(_) => self.enable(key).await.map(drop),
        }
    }
}
