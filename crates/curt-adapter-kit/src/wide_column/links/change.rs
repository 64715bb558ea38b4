use curt_core::ports::{ChangeReply, LinkChange, SpendReply};
use curt_core::{Link, LinkId, LinkState, PortError, PortResult, Revision, UnixMillis};

use super::WideLinks;
use super::lists::{LinkList, end_of, end_place, places_of_owner};
use super::record::{Stored, StoredLink, is_releasable};
use crate::wide_column::ordered::ListPlace;
use crate::wide_column::{Decided, Doubt, Mark, ReadMode, pause};

/// Whether a caller who saw `seen` may change the row; otherwise what to answer.
fn changeable(stored: Option<Stored>, seen: Revision) -> Result<StoredLink, ChangeReply> {
    let link = stored.and_then(Stored::into_link);
    let link = link.filter(|stored| stored.link.state.is_kept());
    let link = link.ok_or(ChangeReply::Absent)?;
    match link.link.revision == seen {
        true => Ok(link),
        false => Err(ChangeReply::Stale(link.link.revision)),
    }
}

/// The tombstone that a link leaves at `now`.
pub(super) fn tombstone(link: &Link, now: UnixMillis) -> Link {
    Link {
        state: LinkState::Tombstone,
        updated_at: now,
        title: None,
        tags: Vec::new(),
        password_hash: None,
        ..link.clone()
    }
}

impl WideLinks {
    /// Changes a link at the revision `seen` to what `edit` makes of it, at the next revision. `None` from `edit`: the link
    /// is not to be changed after all, which is answered as if it were stale.
    pub(super) async fn change(
        &self,
        op: &'static str,
        id: &LinkId,
        seen: Revision,
        edit: impl Fn(&StoredLink) -> Option<Link>,
    ) -> PortResult<ChangeReply> {
        let _turn = self.turn(id).await;
        let mark = Mark::random();
        let mut doubt = Doubt::default();
        let mut stored = self.find(op, id, ReadMode::Acknowledged).await?;
        if changeable(stored.clone(), seen).is_err() {
            // It may only seem so: the caller may have seen what this data centre has not heard of yet.
            stored = self.find(op, id, ReadMode::Decided).await?;
        }
        loop {
            let before = match changeable(stored, seen) {
                Ok(before) => before,
                Err(refusal) => return resolve(refusal, seen, doubt),
            };
            let Some(after) = edit(&before) else {
                return resolve(ChangeReply::Stale(seen), seen, doubt);
            };
            let after = Link {
                id: id.clone(),
                revision: seen.edited(),
                ..after
            };
            let listed = self.lists.add(op, new_places(&before, &after)).await;
            doubt.keep(listed)?;
            let decided = self.rows.edit(op, &before, &after, mark).await;
            match doubt.keep(decided)? {
                Decided::Applied => return Ok(ChangeReply::Changed(LinkChange::of(&after))),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            stored = doubt.keep(self.find(op, id, ReadMode::Decided).await)?;
            if let Some(Stored::Link(link)) = &stored
                && link.was_changed_by(mark)
            {
                return Ok(ChangeReply::Changed(link.change()));
            }
            pause().await;
        }
    }

    pub(super) async fn spend(
        &self,
        op: &'static str,
        id: &LinkId,
        seen: Revision,
    ) -> PortResult<SpendReply> {
        let _turn = self.turn(id).await;
        let mark = Mark::random();
        let mut doubt: Option<(u64, PortError)> = None;
        let mut stored = self.find_link(op, id).await?;
        loop {
            let as_seen = |stored: &StoredLink| {
                stored.link.state == LinkState::Active && stored.link.revision == seen
            };
            if let Some(found) = stored.as_ref().filter(|found| found.was_spent_by(mark)) {
                debug_assert!(found.spent > 0);
                return Ok(SpendReply::Granted);
            }
            let found = stored.filter(as_seen);
            // Ours may lie below what came after it: only the next number is certainly another's.
            if let Some((before, error)) = doubt.take()
                && found.as_ref().is_none_or(|found| found.spent > before + 1)
            {
                return Err(error);
            }
            let Some(found) = found else {
                return Ok(SpendReply::Stale);
            };
            let spent = found.spent;
            match found.link.max_clicks {
                None => return Ok(SpendReply::Granted),
                Some(most) if spent >= most => return Ok(SpendReply::Exhausted),
                Some(_) => {}
            }
            match self.rows.spend(op, id, seen, spent, mark).await? {
                Decided::Applied => return Ok(SpendReply::Granted),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt = Some((spent, error)),
            }
            pause().await;
            let now = self.find(op, id, ReadMode::Decided).await;
            let now = match (now, &doubt) {
                (Ok(now), _) => now,
                (Err(_), Some((_, error))) => return Err(error.clone()),
                (Err(error), None) => return Err(error),
            };
            stored = now.and_then(Stored::into_link);
        }
    }
}

/// What to answer when the row is not as the caller saw it, although a try of ours may have been applied.
fn resolve(refusal: ChangeReply, seen: Revision, doubt: Doubt) -> PortResult<ChangeReply> {
    match (refusal, doubt.into_error()) {
        (refusal, None) => Ok(refusal),
        // Each revision has one writer, and the next one is not ours.
        (ChangeReply::Stale(now), Some(_)) if now == seen.edited() => Ok(ChangeReply::Stale(now)),
        (_, Some(error)) => Err(error),
    }
}

/// Lists that the change brings the link into.
fn new_places(before: &StoredLink, after: &Link) -> Vec<ListPlace> {
    let mut places = Vec::new();
    if after.owner != before.link.owner {
        places.extend(places_of_owner(after));
    }
    if end_of(after) != end_of(&before.link) {
        places.extend(end_place(after));
    }
    if is_releasable(after, before.was_permanent) {
        places.push(LinkList::Tombstones.place(after.updated_at, &after.id));
    }
    places
}
