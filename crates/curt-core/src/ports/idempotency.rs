use async_trait::async_trait;

use crate::clock::UnixMillis;
use crate::error::{ErrorKind, PortError, PortResult};
use crate::key::LinkId;
use crate::link::{KeyOrigin, Link};
use crate::owner::OwnerId;
use crate::ports::Inserted;

/// What requests with an idempotency key are doing and were answered.
///
/// A request [`begin`](Self::begin)s with the keys that it is going to use, inserts its links with the plan's token, and
/// [`finish`](Self::finish)es. No step depends on another being in the same transaction: a retry after a crash anywhere
/// resumes the stored plan, finds its own links by their token and creates the missing ones; two retries at once work
/// on the same plan and come to the same outcome.
#[async_trait]
pub trait Idempotency: Send + Sync {
    /// Stores the plan under the request's key, unless one is there that began less than
    /// [`IDEMPOTENCY_KEPT`](crate::limits::IDEMPOTENCY_KEPT) before `plan.at`. A record that is too old counts as absent.
    ///
    /// - *Durable*, whatever the reply: what it tells survives a crash of everything (L-1).
    /// - *Called twice* with the same plan: `New` both times, as long as it is neither replaced nor finished.
    /// - *Timed out*: unknown; safe to call again.
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply>;

    /// Whether the engine has a transaction over links and plans, and with it
    /// [`create_at_once`](Self::create_at_once).
    fn can_create_at_once(&self) -> bool {
        false
    }

    /// Begins, inserts the links of the plan with its token, and finishes, in one transaction: what the three steps
    /// would have done with nothing in between. `links` are the plan's, in order, under different ids.
    ///
    /// *Called twice*, or *timed out*: as [`begin`](Self::begin).
    async fn create_at_once(
        &self,
        _request: &IdempotentRequest,
        _plan: &CreationPlan,
        _links: Vec<Link>,
    ) -> PortResult<CreatedAtOnce> {
        let detail = "this engine begins, inserts and finishes one by one";
        Err(PortError::new(
            ErrorKind::Invalid,
            "idempotency",
            "create at once",
            detail,
        ))
    }

    /// Replaces the stored plan by `plan`, the successor of `plan.version - 1` under the same token, because a generated
    /// key was taken. Called before any insert that uses the new keys. Returns the plan that is stored then: another one
    /// when a concurrent retry was faster. A record that is gone is `Invalid`.
    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan>;

    /// Stores what came of the request with this token, and returns what is stored: the first outcome stays. A record
    /// that is gone, or another request's, is left alone, and `outcome` is returned.
    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome>;

    /// Removes the record of a request with this token that has not finished, because nothing came of it, and returns
    /// whether it was there: then its keys can be used by others. A retry at the same time may still insert them, as it
    /// may with any key that comes back. Called twice: the second is `false`. Timed out: unknown, the keys are lost.
    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool>;

    /// Removes up to `limit` records that began before `before`, and returns how many.
    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize>;
}

/// The client's idempotency key with a fingerprint of what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotentRequest {
    pub owner: OwnerId,
    pub key: Box<str>,
    pub fingerprint: [u8; 32],
}

/// A random number that marks the links of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestToken(pub [u8; 16]);

/// Which keys a request is going to use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreationPlan {
    pub token: RequestToken,
    /// Counts replacements, from 0.
    pub version: u32,
    /// When the request began, and the creation time of its links.
    pub at: UnixMillis,
    /// Per link, in order.
    pub keys: Vec<PlannedKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlannedKey {
    pub id: LinkId,
    pub origin: KeyOrigin,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreationOutcome {
    /// The creation time of its links. A link under one of the ids that was created at another time is not its own.
    pub at: UnixMillis,
    /// Its links, in order; `None` where an alias had been taken.
    pub ids: Vec<Option<LinkId>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeginReply {
    New,
    /// The same request began before and did not finish: go on with this plan.
    Resumed(CreationPlan),
    /// The same request finished before.
    Replayed(CreationOutcome),
    /// The key was used for a different request.
    Mismatch,
}

/// What became of [`Idempotency::create_at_once`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedAtOnce {
    /// Nothing else was done unless this is `New`.
    pub begun: BeginReply,
    /// Per link.
    pub inserted: Vec<Inserted>,
    /// `None`: a generated key was taken, so that the plan has to be replaced, and what was inserted stays.
    pub outcome: Option<CreationOutcome>,
}

/// A request as an engine keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyRecord {
    pub fingerprint: [u8; 32],
    pub plan: CreationPlan,
    pub outcome: Option<CreationOutcome>,
}

impl IdempotencyRecord {
    /// What [`Idempotency::begin`] replies when this record is stored after it.
    #[must_use]
    pub fn reply_to(self, request: &IdempotentRequest, plan: &CreationPlan) -> BeginReply {
        match self.outcome {
            _ if self.fingerprint != request.fingerprint => BeginReply::Mismatch,
            Some(outcome) => BeginReply::Replayed(outcome),
            None if self.plan == *plan => BeginReply::New,
            None => BeginReply::Resumed(self.plan),
        }
    }
}

/// One line per item, for engines that keep plans and outcomes as text.
impl CreationPlan {
    #[must_use]
    pub fn keys_to_text(&self) -> String {
        let lines = self.keys.iter();
        let lines = lines.map(|key| format!("{} {}", key.origin.name(), key.id));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// `None`: the text is not one of [`keys_to_text`](Self::keys_to_text).
    #[must_use]
    pub fn keys_of_text(text: &str) -> Option<Vec<PlannedKey>> {
        let key = |line: &str| {
            let (origin, id) = line.split_once(' ')?;
            Some(PlannedKey {
                origin: KeyOrigin::ALL
                    .into_iter()
                    .find(|one| one.name() == origin)?,
                id: LinkId::parse(id)?,
            })
        };
        text.lines().map(key).collect()
    }
}

impl CreationOutcome {
    /// The outcome of a plan whose inserts were answered so. `None`: a generated key is taken, and another is needed.
    #[must_use]
    pub fn of<'a>(
        plan: &CreationPlan,
        inserted: impl IntoIterator<Item = &'a Inserted>,
    ) -> Option<Self> {
        let places = inserted.into_iter().zip(&plan.keys);
        let id = |(inserted, key): (&Inserted, &PlannedKey)| match inserted {
            Inserted::Created(_) | Inserted::CreatedBefore(_) => Some(Some(key.id.clone())),
            Inserted::Conflict if key.origin == KeyOrigin::Alias => Some(None),
            Inserted::Conflict => None,
        };
        let ids = places.map(id).collect::<Option<Vec<_>>>()?;
        Some(Self { at: plan.at, ids })
    }

    #[must_use]
    pub fn ids_to_text(&self) -> String {
        let line = |id: &Option<LinkId>| id.as_ref().map_or("-".to_owned(), LinkId::to_string);
        self.ids.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// `None`: the text is not one of [`ids_to_text`](Self::ids_to_text).
    #[must_use]
    pub fn ids_of_text(text: &str) -> Option<Vec<Option<LinkId>>> {
        let id = |line| match line {
            "-" => Some(None),
            line => LinkId::parse(line).map(Some),
        };
        text.lines().map(id).collect()
    }
}
