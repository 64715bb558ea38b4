//! Tags over many links: which there are, and what becomes of one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use curt_core::limits::PAGE_LINKS_MAX;
use curt_core::ports::ListQuery;
use curt_core::{Link, OwnerId};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Change, Who, refuse_deleted};
use crate::Links;
use crate::admit::{self, EditLink, parse_tags};
use crate::error::LinkError;

/// Pages of links that are read to count tags: engines keep tags by link, not by owner.
const PAGES_COUNTED_MAX: usize = 25;
/// Pages of links whose tag one call replaces.
const PAGES_REPLACED_MAX: usize = 5;
/// Tags that are told of; of more, those that most links carry.
const TAGS_TOLD_MAX: usize = 1_000;
/// Links that are written at the same time, so that they share commits.
const WRITES_MAX: usize = 64;

/// Tags that a link is to get and to lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagChange {
    pub add: Vec<String>,
    /// Those that the link does not carry are left alone.
    pub remove: Vec<String>,
}

/// The tags of one owner's links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagCounts {
    /// With how many links carry each, in the order of their names.
    pub tags: Vec<(Box<str>, u64)>,
    pub links_read: u64,
    /// Whether all links were read and all tags are told.
    pub is_complete: bool,
}

/// What became of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagReplacement {
    pub changed: u64,
    /// Whether no link carries the tag any more; otherwise the same call goes on.
    pub is_complete: bool,
}

impl Links {
    /// Adds and removes tags of a link. Nothing to change: nothing happens.
    pub async fn change_tags(
        &self,
        who: Who,
        key: &str,
        change: &TagChange,
    ) -> Result<Link, LinkError> {
        let blocklist = self.policy.blocklist();
        let removed = parse_tags(&change.remove).map_err(LinkError::Invalid)?;
        let decide = |current: &Link, now| {
            refuse_deleted(current)?;
            let is_removed = |tag: &str| removed.iter().any(|gone| gone.eq_ignore_ascii_case(tag));
            let kept = current.tags.iter().filter(|tag| !is_removed(tag));
            let kept = kept.map(|tag| tag.to_string());
            let edit = EditLink {
                tags: Some(kept.chain(change.add.iter().cloned()).collect()),
                ..EditLink::default()
            };
            let rules = self.admission_rules(&blocklist, now);
            let wanted = admit::edit(&rules, current, &edit).map_err(LinkError::Invalid)?;
            match wanted.tags == current.tags {
                true => Ok(Change::Nothing),
                false => Ok(Change::Update(Box::new(wanted))),
            }
        };
        let link = self.change(who, key, None, decide).await?;
        self.metrics.edited.inc();
        Ok(link)
    }

    /// Counts the tags of an owner's links, the newest first, as far as a bounded number of reads goes.
    pub async fn tag_counts(&self, owner: OwnerId) -> Result<TagCounts, LinkError> {
        let mut counts = BTreeMap::<Box<str>, u64>::new();
        let (mut links_read, mut is_complete) = (0, false);
        let mut query = ListQuery {
            limit: PAGE_LINKS_MAX,
            ..ListQuery::default()
        };
        for _ in 0..PAGES_COUNTED_MAX {
            let page = self.list(Who::Owner(owner), query.clone()).await?;
            links_read += page.links.len() as u64;
            for tag in page.links.into_iter().flat_map(|link| link.tags) {
                *counts.entry(tag).or_default() += 1;
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                is_complete = true;
                break;
            }
        }
        let mut tags: Vec<(Box<str>, u64)> = counts.into_iter().collect();
        if tags.len() > TAGS_TOLD_MAX {
            tags.sort_by_key(|(_, links)| Reverse(*links));
            tags.truncate(TAGS_TOLD_MAX);
            tags.sort();
            is_complete = false;
        }
        Ok(TagCounts {
            tags,
            links_read,
            is_complete,
        })
    }

    /// Takes a tag off an owner's links, and puts another in its place if there is one; links that have both keep one. So
    /// it is renamed, merged or removed. Deleted links keep it. A call changes a bounded number of links; called again, it
    /// goes on.
    pub async fn replace_tag(
        &self,
        owner: OwnerId,
        tag: &str,
        with: Option<&str>,
    ) -> Result<TagReplacement, LinkError> {
        let texts = |text: &str| parse_tags(&[text.to_owned()]).map_err(LinkError::Invalid);
        let old = texts(tag)?;
        let new = with.map(texts).transpose()?.unwrap_or_default();
        let mut done = TagReplacement::default();
        if old == new {
            done.is_complete = true;
            return Ok(done);
        }
        let who = Who::Owner(owner);
        let change = TagChange {
            add: new.iter().map(|tag| tag.to_string()).collect(),
            remove: old.iter().map(|tag| tag.to_string()).collect(),
        };
        let mut query = ListQuery {
            tags: old,
            limit: PAGE_LINKS_MAX,
            ..ListQuery::default()
        };
        for _ in 0..PAGES_REPLACED_MAX {
            let page = self.list(who, query.clone()).await?;
            let mut writes = Vec::with_capacity(page.links.len());
            for link in &page.links {
                writes.push(self.replace_tags_of(who, link, &change));
            }
            let writes = stream::iter(writes).buffer_unordered(WRITES_MAX);
            let changed: Vec<u64> = writes.try_collect().await?;
            done.changed += changed.iter().sum::<u64>();
            query.cursor = page.next;
            if query.cursor.is_none() {
                done.is_complete = true;
                break;
            }
        }
        Ok(done)
    }

    /// Returns how many links were changed: one or none.
    async fn replace_tags_of(
        &self,
        who: Who,
        link: &Link,
        change: &TagChange,
    ) -> Result<u64, LinkError> {
        match self.change_tags(who, link.id.key.as_str(), change).await {
            Ok(_) => Ok(1),
            // Deleted or handed over in between: it is not among the owner's links any more.
            Err(LinkError::NotFound | LinkError::Deleted) => Ok(0),
            Err(error) => Err(error),
        }
    }
}
