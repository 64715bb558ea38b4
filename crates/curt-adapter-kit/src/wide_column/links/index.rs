use async_trait::async_trait;
use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{ChangeReply, LinkChange, LinkIndex, ListOrder, ListPage, ListQuery};
use curt_core::{ErrorKind, Link, LinkId, LinkState, PortError, PortResult, Revision, UnixMillis};
use data_encoding::BASE64URL_NOPAD;

use super::lists::{LinkList, end_of};
use super::record::{FORMER, Stored, StoredLink};
use super::{WideLinks, change};
use crate::wide_column::ordered::{Entries, Entry, Span};
use crate::wide_column::{Decided, Mark, ReadMode, together};
use crate::{Effect, page_cursor};

/// Entries that are looked at together: few enough that a page without filters does not read much for nothing.
const ENTRIES_AT_ONCE_MIN: usize = 32;
const ENTRIES_AT_ONCE_MAX: usize = 1_000;

#[async_trait]
impl LinkIndex for WideLinks {
    async fn list(&self, query: &ListQuery) -> PortResult<ListPage> {
        const OP: &str = "list links";
        self.in_background(OP, Effect::None, self.page(OP, query))
            .await
    }

    async fn cursor_behind(&self, link: &Link, order: ListOrder) -> PortResult<Option<Box<str>>> {
        let list = match order {
            ListOrder::NewestFirst | ListOrder::OldestFirst => LinkList::AllByTime,
            ListOrder::KeyRising | ListOrder::KeyFalling => LinkList::AllByKey,
        };
        let position = list.place(link.created_at, &link.id).position;
        Ok(Some(seal_position(&self.order_name(order), &position)))
    }

    async fn ended(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<(LinkId, Revision)>> {
        const OP: &str = "find ended links";
        let ended = self.find_ended(OP, before, limit);
        self.in_background(OP, Effect::None, ended).await
    }

    async fn purge(
        &self,
        batch: &[(LinkId, Revision)],
        before: UnixMillis,
        now: UnixMillis,
    ) -> PortResult<Vec<LinkChange>> {
        const OP: &str = "purge links";
        let edit = |stored: &StoredLink| {
            let is_due = end_of(&stored.link).is_some_and(|at| at <= before);
            is_due.then(|| change::tombstone(&stored.link, now))
        };
        let purges = batch.iter().map(|(id, seen)| async move {
            let reply = self.change(OP, id, *seen, edit).await?;
            Ok::<_, PortError>(match reply {
                ChangeReply::Changed(change) => Some(change),
                ChangeReply::Stale(_) | ChangeReply::Absent => None,
            })
        });
        let purged = self
            .in_background(OP, Effect::Unknown, together(purges))
            .await?;
        Ok(purged.into_iter().flatten().collect())
    }

    async fn release(&self, before: UnixMillis, limit: usize) -> PortResult<Vec<LinkChange>> {
        const OP: &str = "release keys";
        let released = self.release_tombstones(OP, before, limit);
        self.in_background(OP, Effect::Unknown, released).await
    }
}

impl WideLinks {
    async fn in_background<T>(
        &self,
        op: &'static str,
        effect: Effect,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        let limit = self.deadlines.background;
        self.deadlines.within(op, limit, effect, call).await
    }

    /// Part of the cursors that clients hold.
    fn order_name(&self, order: ListOrder) -> String {
        let name = match order {
            ListOrder::NewestFirst => "new",
            ListOrder::OldestFirst => "old",
            ListOrder::KeyRising => "az",
            ListOrder::KeyFalling => "za",
        };
        format!("{}-{name}", self.deadlines.backend)
    }

    fn wrong_cursor(&self, op: &'static str) -> PortError {
        let detail = "the cursor is not one of this store and order; start again without it";
        PortError::new(ErrorKind::Invalid, self.deadlines.backend, op, detail)
    }

    async fn page(&self, op: &'static str, query: &ListQuery) -> PortResult<ListPage> {
        let name = &self.order_name(query.order);
        let after = match &query.cursor {
            None => None,
            Some(cursor) => Some(read_cursor(name, cursor).ok_or_else(|| self.wrong_cursor(op))?),
        };
        let (list, mut span) = LinkList::of_query(query, after.as_deref());
        let mut page = ListPage::default();
        if query.limit == 0 {
            return Ok(page);
        }
        let mut scanned = 0;
        while page.links.len() < query.limit {
            let wanted = (query.limit - page.links.len())
                .saturating_mul(2)
                .clamp(ENTRIES_AT_ONCE_MIN, ENTRIES_AT_ONCE_MAX)
                .min(PAGE_ROWS_SCANNED_MAX - scanned);
            let (entries, links) = self.read_entries(op, list, &span, wanted).await?;
            scanned += entries.entries.len();
            let mut stale = Vec::new();
            for (entry, stored) in entries.entries.iter().zip(links) {
                let position = &entry.place.position;
                if page.links.len() == query.limit {
                    page.next = page.next.or_else(|| Some(write_cursor(name, &span)));
                    break;
                }
                span.follow(&entry.place);
                match stored {
                    Some(stored) if is_listed_at(list, position, &stored.link) => {
                        if query.shows(&stored.link, stored.spent) {
                            page.links.push(stored.link);
                        }
                    }
                    _ => stale.push(entry.clone()),
                }
            }
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                return Ok(page);
            }
            if scanned == PAGE_ROWS_SCANNED_MAX {
                break;
            }
        }
        page.next = page.next.or_else(|| Some(write_cursor(name, &span)));
        Ok(page)
    }

    async fn find_ended(
        &self,
        op: &'static str,
        before: UnixMillis,
        limit: usize,
    ) -> PortResult<Vec<(LinkId, Revision)>> {
        let list = LinkList::Ends;
        let mut span = list.until(before);
        let mut ended = Vec::new();
        while ended.len() < limit {
            let wanted = (limit - ended.len()).clamp(ENTRIES_AT_ONCE_MIN, ENTRIES_AT_ONCE_MAX);
            let (entries, links) = self.read_entries(op, list, &span, wanted).await?;
            let (mut stale, mut over) = (Vec::new(), Vec::new());
            for (entry, stored) in entries.entries.iter().zip(links) {
                let position = &entry.place.position;
                span.follow(&entry.place);
                let at = list.link_at(position).map(|(at, _)| at);
                match stored {
                    Some(stored) if end_of(&stored.link) == at => {
                        ended.push((stored.link.id, stored.link.revision));
                    }
                    // Its end is behind it: without waiting, or each purge would read what those before it purged.
                    Some(stored) if stored.link.state == LinkState::Tombstone => {
                        over.push(entry.clone());
                    }
                    _ => stale.push(entry.clone()),
                }
            }
            self.lists.drop_stale(op, stale).await;
            self.lists.drop_entries(op, over).await?;
            if entries.is_all {
                break;
            }
        }
        ended.truncate(limit);
        Ok(ended)
    }

    async fn release_tombstones(
        &self,
        op: &'static str,
        before: UnixMillis,
        limit: usize,
    ) -> PortResult<Vec<LinkChange>> {
        let list = LinkList::Tombstones;
        let mut span = list.until(before);
        let mut released = Vec::new();
        while released.len() < limit {
            let wanted = (limit - released.len()).min(ENTRIES_AT_ONCE_MAX);
            let (entries, links) = self.read_entries(op, list, &span, wanted).await?;
            let found = entries.entries.iter().zip(links);
            let tries = found.map(|(entry, stored)| self.release_one(op, list, entry, stored));
            let tried = together(tries).await?;
            let (mut over, mut stale) = (Vec::new(), Vec::new());
            for (entry, outcome) in entries.entries.into_iter().zip(tried) {
                span.follow(&entry.place);
                match outcome {
                    Released::ByUs(change) => {
                        released.push(change);
                        over.push(entry);
                    }
                    Released::ByOthers => {}
                    Released::Nothing => stale.push(entry),
                }
            }
            // Once keys are released they must be told, whatever becomes of hints.
            self.lists.drop_entries(op, over).await.ok();
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                break;
            }
        }
        Ok(released)
    }

    /// Releases what the entry leads to, if this call is the one that does.
    async fn release_one(
        &self,
        op: &'static str,
        list: LinkList,
        entry: &Entry,
        stored: Option<StoredLink>,
    ) -> PortResult<Released> {
        let Some(stored) = stored else {
            return Ok(Released::Nothing);
        };
        let at = list.link_at(&entry.place.position).map(|(at, _)| at);
        if !stored.is_releasable() || Some(stored.link.updated_at) != at {
            return Ok(Released::Nothing);
        }
        let (id, mark) = (&stored.link.id, Mark::random());
        let _turn = self.turn(id).await;
        let mut before = stored.released.clone();
        before.remove(&FORMER);
        *before.entry(stored.link.origin as i8).or_default() += 1;
        let is_own = match self.rows.release(op, &stored, &before, mark).await? {
            Decided::Applied => true,
            Decided::Refused => false,
            Decided::Unknown(_) => self.was_released_by(op, id, mark).await?,
        };
        Ok(match is_own {
            true => Released::ByUs(stored.change()),
            false => Released::ByOthers,
        })
    }

    /// Whether the key was released by the call with this mark. A key of which nobody knows is lost, as after a crash.
    async fn was_released_by(&self, op: &'static str, id: &LinkId, mark: Mark) -> PortResult<bool> {
        let stored = self.find(op, id, ReadMode::Decided).await?;
        let is_released = |stored: &Stored| matches!(stored, Stored::Released { .. });
        Ok(stored.is_some_and(|stored| is_released(&stored) && stored.was_changed_by(mark)))
    }

    /// Entries of a list, each with the link that it leads to.
    pub(super) async fn read_entries(
        &self,
        op: &'static str,
        list: LinkList,
        span: &Span,
        limit: usize,
    ) -> PortResult<(Entries, Vec<Option<StoredLink>>)> {
        let entries = self.lists.read(op, span, limit).await?;
        let ids = entries.entries.iter();
        let ids = ids.map(|entry| list.link_at(&entry.place.position).map(|(_, id)| id));
        let ids: Vec<Option<LinkId>> = ids.collect();
        let known: Vec<LinkId> = ids.iter().flatten().cloned().collect();
        let mut found = self.find_links(op, &known).await?.into_iter();
        let links = ids.iter().map(|id| id.as_ref().and_then(|_| found.next()?));
        let links = links.collect();
        Ok((entries, links))
    }
}

/// What became of an entry of the tombstones.
enum Released {
    ByUs(LinkChange),
    /// By others, or nobody knows.
    ByOthers,
    /// The entry does not lead to a tombstone of its time.
    Nothing,
}

/// Whether the link belongs where it was found.
pub(super) fn is_listed_at(list: LinkList, position: &[u8], link: &Link) -> bool {
    let is_kept = link.state.is_kept();
    match list {
        LinkList::OwnerByTime(owner) | LinkList::OwnerByKey(owner) if owner != link.owner => false,
        _ => is_kept && list.place(link.created_at, &link.id).position == position,
    }
}

fn write_cursor(name: &str, span: &Span) -> Box<str> {
    let position = match span.is_rising {
        true => &span.positions.0,
        false => &span.positions.1,
    };
    seal_position(name, position)
}

fn seal_position(name: &str, position: &[u8]) -> Box<str> {
    page_cursor::seal(name, &BASE64URL_NOPAD.encode(position))
}

fn read_cursor(name: &str, cursor: &str) -> Option<Vec<u8>> {
    let position = page_cursor::unseal(name, cursor)?;
    BASE64URL_NOPAD.decode(position.as_bytes()).ok()
}
