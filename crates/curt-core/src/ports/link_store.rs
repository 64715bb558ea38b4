use async_trait::async_trait;

use super::RequestToken;
use crate::clock::UnixMillis;
use crate::error::PortResult;
use crate::key::{DomainId, Key, LinkId};
use crate::link::{Link, Revision};
use crate::owner::OwnerId;

/// Links by key. The only judge of uniqueness (K-1). Every operation is about single links, so that an engine that
/// writes one row at a time can keep all of it.
#[async_trait]
pub trait LinkStore: Send + Sync {
    /// Inserts each link whose id is free, and says so per link, in order. A row in any state, tombstones and seeded
    /// rows included, makes an id taken. Items are independent: some may be stored when the call fails.
    ///
    /// - *Durable*: what is reported as created survives a crash of everything (L-1).
    /// - *Under a key that another link had before* and that [`release`](super::LinkIndex::release) gave back: the stored
    ///   generation is one more than that link's, whatever the request says; the outcome tells it. So nothing that
    ///   names the generation of the former link is about the new one.
    /// - *Twice in one call*: the first wins. With a token the caller names each id once.
    /// - *With `token`*: it is stored beside each link for good. A row that carries it already is
    ///   [`Inserted::CreatedBefore`], whatever has become of the link since.
    /// - *Timed out*: unknown; with a token it is safe to call again.
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>>;

    /// As [`insert_if_absent`](Self::insert_if_absent), with an outcome for each link where only some could be inserted:
    /// over several databases, one that is away costs its own links. A failure of the whole call is one of every link.
    async fn insert_each(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<PortResult<Inserted>>> {
        let inserted = self.insert_if_absent(links, token).await?;
        Ok(inserted.into_iter().map(Ok).collect())
    }

    /// The record under `id` in any state, tombstones included. Absent: `None`.
    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>>;

    /// As [`get`](Self::get), for redirects: from a copy of the store that may be behind, by as much as the engine's
    /// settings allow, where there is one nearer. Absent is certain all the same, and a write that this process made is
    /// seen.
    async fn get_nearby(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.get(id).await
    }

    /// As [`get`](Self::get), for many ids, in order; not all of one instant.
    async fn get_many(&self, ids: &[LinkId]) -> PortResult<Vec<Option<Link>>> {
        let mut links = Vec::with_capacity(ids.len());
        for id in ids {
            links.push(self.get(id).await?);
        }
        Ok(links)
    }

    /// Replaces the link if it is not a tombstone and still has the revision `seen`; the stored revision becomes
    /// `seen.edited()`, whatever `link.revision` says. Identity, owner, `made_with`, origin and creation time are never
    /// changed. With another state the link is disabled, enabled, deleted or restored; a tombstone or a seeded row is
    /// `Invalid`. Called twice with the same `seen`: the second is `Stale`.
    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply>;

    /// Gives the link to `owner` at `now` if it is not a tombstone and still has the revision `seen`; the stored revision
    /// becomes `seen.edited()`, and `updated_at = now`. All else stays, the API key that made it included. Called twice with
    /// the same `seen`: the second is `Stale`.
    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply>;

    /// Turns the link into a tombstone at `now` if it still has the revision `seen`: state `Tombstone`, revision edited,
    /// `updated_at = now`. It cannot be restored: the target stays for the owner's records; title, tags and password go.
    /// A tombstone stays as it is and answers [`ChangeReply::Absent`].
    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply>;

    /// Takes one click from a link with `max_clicks`, if it is active, still has the revision `seen` and has one left,
    /// all in one step: of any number of callers at once, as many are granted as there are clicks left. A link without
    /// `max_clicks` grants every click and counts none.
    ///
    /// What was taken stays taken over edits, so that a raised limit leaves the difference; it goes when the key is
    /// released. Durable when it returns. Called twice: two clicks. Timed out: unknown, at worst one click is lost.
    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply>;

    /// How many clicks [`spend_click`](Self::spend_click) has taken from the link. Absent or without a limit: 0.
    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64>;

    /// As [`clicks_spent`](Self::clicks_spent), for many ids, in order; not all of one instant.
    async fn clicks_spent_many(&self, ids: &[LinkId]) -> PortResult<Vec<u64>> {
        let mut spent = Vec::with_capacity(ids.len());
        for id in ids {
            spent.push(self.clicks_spent(id).await?);
        }
        Ok(spent)
    }

    /// Whether the engine answers, reads and writes alike.
    async fn ping(&self) -> PortResult<()>;

    /// Whether links can be looked up, the way a redirect does, where writing may be impossible. To be called about once
    /// a second by a process that serves redirects.
    async fn ping_reads(&self) -> PortResult<()> {
        match Key::parse("health") {
            // A key that no link can have.
            Ok(key) => self
                .get(&LinkId::new(DomainId::DEFAULT, key))
                .await
                .map(drop),
            Err(_) => Ok(()),
        }
    }
}

/// A link that a write changed, at the revision that the write left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkChange {
    pub id: LinkId,
    pub revision: Revision,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// Under a key that belonged to another link before, the generation is not the request's.
    Created(LinkChange),
    /// The request with this token created it earlier; the revision is that of now.
    CreatedBefore(LinkChange),
    /// The id belongs to another link. Nothing was changed.
    Conflict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeReply {
    Changed(LinkChange),
    /// Another change came first; this is the revision now.
    Stale(Revision),
    /// No such link, or a tombstone.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendReply {
    Granted,
    /// No click was left.
    Exhausted,
    /// The link is not the active one that the caller saw: it should look again.
    Stale,
}

impl LinkChange {
    /// The link itself, as it is.
    #[must_use]
    pub fn of(link: &Link) -> Self {
        Self {
            id: link.id.clone(),
            revision: link.revision,
        }
    }
}

impl Revision {
    /// The revision of a new link that asks for this one, under a key whose last link had the generation `former` and
    /// was released.
    #[must_use]
    pub fn after_former(self, former: Option<u32>) -> Self {
        let next = former.map_or(0, |former| former.saturating_add(1));
        Self {
            generation: self.generation.max(next),
            ..self
        }
    }
}

impl Inserted {
    #[must_use]
    pub fn is_created(&self) -> bool {
        matches!(self, Self::Created(_))
    }

    /// Whether the link is the request's own, made by this call or before.
    #[must_use]
    pub fn is_made(&self) -> bool {
        matches!(self, Self::Created(_) | Self::CreatedBefore(_))
    }
}
