use async_trait::async_trait;
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, Idempotency, IdempotencyRecord, IdempotentRequest,
    RequestToken,
};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};

use super::WideLinks;
use crate::wide_column::ordered::{ListPlace, Span, of_sortable, sortable, successor};
use crate::wide_column::{Decided, Doubt, ReadMode, pause};

/// Requests by age, in buckets of ten minutes.
pub(crate) const LIST: &str = "requests";
const BUCKET_MILLIS: i64 = 600_000;
const FORGOTTEN_AT_ONCE: usize = 500;

/// Requests as an engine keeps them.
#[async_trait]
pub trait RequestRows: Send + Sync {
    async fn get(
        &self,
        op: &'static str,
        owner: OwnerId,
        key: &str,
        mode: ReadMode,
    ) -> PortResult<Option<IdempotencyRecord>>;

    /// Stores a request where there is none, or over the one that was `seen`, if that still has its token, version and
    /// time, and an outcome or none.
    async fn put(
        &self,
        op: &'static str,
        name: (OwnerId, &str),
        record: &IdempotencyRecord,
        seen: Option<&IdempotencyRecord>,
    ) -> PortResult<Decided>;

    /// Stores the outcome, if the request has this token and none yet.
    async fn finish(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: &CreationOutcome,
    ) -> PortResult<Decided>;

    /// Removes the request, if it has this token and no outcome.
    async fn cancel(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
    ) -> PortResult<Decided>;

    /// Removes the request, if its plan has this token and time.
    async fn forget(
        &self,
        op: &'static str,
        owner: OwnerId,
        key: &str,
        plan: &CreationPlan,
    ) -> PortResult<Decided>;
}

#[async_trait]
impl Idempotency for WideLinks {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        const OP: &str = "begin a request";
        self.deadlines
            .change(OP, self.begin_request(OP, request, plan))
            .await
    }

    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        const OP: &str = "replace a plan";
        self.deadlines
            .change(OP, self.replace_stored_plan(OP, request, plan))
            .await
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        const OP: &str = "finish a request";
        self.deadlines
            .change(OP, self.store_outcome(OP, request, token, outcome))
            .await
    }

    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool> {
        const OP: &str = "cancel a request";
        let decided = self.requests.cancel(OP, request, token);
        self.deadlines.change(OP, decided).await?.into_result()
    }

    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize> {
        const OP: &str = "forget requests";
        let forget = self.forget(OP, before, limit);
        self.deadlines.change_much(OP, forget).await
    }
}

impl WideLinks {
    async fn begin_request(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        let (owner, key) = (request.owner, &*request.key);
        let found = self.requests.get(op, owner, key, ReadMode::Acknowledged);
        let mut found = found.await?;
        self.lists.add(op, [place(plan.at, owner, key)]).await?;
        let new = unfinished(request, plan);
        let mut doubt = Doubt::default();
        loop {
            let is_kept =
                |record: &IdempotencyRecord| plan.at.since(record.plan.at) <= IDEMPOTENCY_KEPT;
            if let Some(record) = found.as_ref().filter(|record| is_kept(record)) {
                return Ok(record.clone().reply_to(request, plan));
            }
            let name = (owner, key);
            let decided = self.requests.put(op, name, &new, found.as_ref()).await;
            match doubt.keep(decided)? {
                Decided::Applied => return Ok(BeginReply::New),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            // Applied or not, known or not: what is stored now says it all, and the same plan is `New` again.
            let stored = self.requests.get(op, owner, key, ReadMode::Decided);
            found = doubt.keep(stored.await)?;
            if found.is_none() {
                pause().await;
            }
        }
    }

    async fn replace_stored_plan(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        let (owner, key) = (request.owner, &*request.key);
        let new = unfinished(request, plan);
        loop {
            let found = self.requests.get(op, owner, key, ReadMode::Decided);
            let found = found.await?.filter(|found| found.plan.token == plan.token);
            let stored = found.ok_or_else(|| {
                let detail = "the idempotency record is gone";
                PortError::new(ErrorKind::Invalid, self.deadlines.backend, op, detail)
            })?;
            if stored.plan.version.saturating_add(1) != plan.version || stored.outcome.is_some() {
                return Ok(stored.plan);
            }
            let name = (owner, key);
            match self.requests.put(op, name, &new, Some(&stored)).await? {
                Decided::Applied => return Ok(plan.clone()),
                Decided::Refused | Decided::Unknown(_) => pause().await,
            }
        }
    }

    async fn store_outcome(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        loop {
            let decided = self.requests.finish(op, request, token, &outcome).await?;
            if let Decided::Applied = decided {
                return Ok(outcome);
            }
            let (owner, key) = (request.owner, &*request.key);
            let found = self.requests.get(op, owner, key, ReadMode::Decided);
            match found.await? {
                Some(record) if record.plan.token == token => {
                    if let Some(first) = record.outcome {
                        return Ok(first);
                    }
                }
                _ => return Ok(outcome),
            }
            pause().await;
        }
    }

    async fn forget(
        &self,
        op: &'static str,
        before: UnixMillis,
        limit: usize,
    ) -> PortResult<usize> {
        let mut span = Span {
            list: LIST.to_owned(),
            buckets: (Vec::new(), successor(&bucket_of(before))),
            positions: (Vec::new(), sortable(before.0).to_vec()),
            is_rising: true,
        };
        let mut forgotten = 0;
        while forgotten < limit {
            let wanted = (limit - forgotten).min(FORGOTTEN_AT_ONCE);
            let entries = self.lists.read(op, &span, wanted).await?;
            let (mut over, mut stale) = (Vec::new(), Vec::new());
            for entry in entries.entries {
                span.follow(&entry.place);
                match self.forget_one(op, &entry.place.position).await? {
                    Some(true) => {
                        forgotten += 1;
                        over.push(entry);
                    }
                    Some(false) => {}
                    None => stale.push(entry),
                }
            }
            self.lists.drop_entries(op, over).await?;
            self.lists.drop_stale(op, stale).await;
            if entries.is_all {
                break;
            }
        }
        Ok(forgotten)
    }

    /// Whether this call removed the record that the position leads to. `None`: it leads to none.
    async fn forget_one(&self, op: &'static str, position: &[u8]) -> PortResult<Option<bool>> {
        let Some((at, owner, key)) = request_at(position) else {
            return Ok(None);
        };
        let found = self.requests.get(op, owner, key, ReadMode::Acknowledged);
        let Some(record) = found.await?.filter(|record| record.plan.at == at) else {
            return Ok(None);
        };
        let decided = self.requests.forget(op, owner, key, &record.plan).await?;
        Ok(Some(matches!(decided, Decided::Applied)))
    }
}

/// A request that has begun.
fn unfinished(request: &IdempotentRequest, plan: &CreationPlan) -> IdempotencyRecord {
    IdempotencyRecord {
        fingerprint: request.fingerprint,
        plan: plan.clone(),
        outcome: None,
    }
}

fn bucket_of(at: UnixMillis) -> Vec<u8> {
    sortable(at.0.div_euclid(BUCKET_MILLIS)).to_vec()
}

/// All requests, oldest first.
pub(super) fn all_requests() -> Span {
    Span::all(LIST, true)
}

/// Where a request stands in the list.
pub(super) fn place(at: UnixMillis, owner: OwnerId, key: &str) -> ListPlace {
    let owner = owner.0.to_be_bytes();
    ListPlace {
        list: LIST.to_owned(),
        bucket: bucket_of(at),
        position: [&sortable(at.0)[..], &owner, key.as_bytes()].concat(),
    }
}

pub(super) fn request_at(position: &[u8]) -> Option<(UnixMillis, OwnerId, &str)> {
    let (at, rest) = position.split_first_chunk::<8>()?;
    let (owner, key) = rest.split_first_chunk::<8>()?;
    let owner = OwnerId(u64::from_be_bytes(*owner));
    let key = str::from_utf8(key).ok()?;
    Some((UnixMillis(of_sortable(*at)), owner, key))
}
