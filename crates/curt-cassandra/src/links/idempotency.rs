use async_trait::async_trait;
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, Idempotency, IdempotencyRecord, IdempotentRequest,
    RequestToken,
};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};
use scylla::{DeserializeRow, SerializeRow};

use super::CassandraLinks;
use super::lists::{of_sortable, sortable};
use super::record::small;
use crate::failure::{BACKEND, corrupt};
use crate::ordered::{Place, Span, successor};
use crate::pause::pause;
use crate::statement::{Cql, Decided, Doubt};
use curt_adapter_kit::Effect;

pub(super) const GET: Cql = Cql::read(
    "SELECT fingerprint, request_token, version, at, keys, finished, outcome_at, outcome FROM KEYSPACE.requests \
     WHERE namespace = ? AND owner = ? AND key = ?",
);
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.requests (namespace, owner, key, fingerprint, request_token, version, at, keys, finished) \
     VALUES (:namespace, :owner, :key, :fingerprint, :request_token, :version, :at, :keys, false) IF NOT EXISTS",
);
const REPLACE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.requests SET fingerprint = :fingerprint, request_token = :request_token, version = :version, at = :at, \
     keys = :keys, finished = false, outcome_at = null, outcome = null \
     WHERE namespace = :namespace AND owner = :owner AND key = :key \
     IF request_token = :seen_token AND version = :seen_version AND at = :seen_at",
);
const FINISH: Cql = Cql::conditional(
    "UPDATE KEYSPACE.requests SET finished = true, outcome_at = ?, outcome = ? \
     WHERE namespace = ? AND owner = ? AND key = ? IF request_token = ? AND finished = false",
);
const CANCEL: Cql = Cql::conditional(
    "DELETE FROM KEYSPACE.requests WHERE namespace = ? AND owner = ? AND key = ? IF request_token = ? AND finished = false",
);
pub(super) const FORGET: Cql = Cql::conditional(
    "DELETE FROM KEYSPACE.requests WHERE namespace = ? AND owner = ? AND key = ? IF request_token = ? AND at = ?",
);

/// Requests by age, in buckets of ten minutes.
const LIST: &str = "requests";
const BUCKET_MILLIS: i64 = 600_000;
const FORGOTTEN_AT_ONCE: usize = 500;

#[derive(DeserializeRow)]
struct RequestRow {
    fingerprint: Vec<u8>,
    request_token: Vec<u8>,
    version: i64,
    at: i64,
    keys: String,
    finished: bool,
    outcome_at: Option<i64>,
    outcome: Option<String>,
}

impl RequestRow {
    fn into_record(self, op: &'static str) -> PortResult<IdempotencyRecord> {
        let fixed = |what: &'static str| corrupt(op, what);
        let plan = CreationPlan {
            token: RequestToken(self.request_token.try_into().map_err(|_| fixed("token"))?),
            version: small(op, self.version)?,
            at: UnixMillis(self.at),
            keys: CreationPlan::keys_of_text(&self.keys).ok_or_else(|| fixed("planned keys"))?,
        };
        let outcome = match (self.finished, self.outcome_at, self.outcome) {
            (false, ..) => None,
            (true, Some(at), Some(ids)) => Some(CreationOutcome {
                at: UnixMillis(at),
                ids: CreationOutcome::ids_of_text(&ids).ok_or_else(|| fixed("outcome"))?,
            }),
            (true, ..) => return Err(fixed("a finished request without an outcome")),
        };
        Ok(IdempotencyRecord {
            fingerprint: self
                .fingerprint
                .try_into()
                .map_err(|_| fixed("fingerprint"))?,
            plan,
            outcome,
        })
    }
}

#[derive(SerializeRow)]
struct NewRequest<'a> {
    namespace: &'a str,
    owner: i64,
    key: &'a str,
    fingerprint: &'a [u8],
    request_token: &'a [u8],
    version: i64,
    at: i64,
    keys: String,
}

#[derive(SerializeRow)]
struct Replacement<'a> {
    #[scylla(flatten)]
    request: NewRequest<'a>,
    seen_token: &'a [u8],
    seen_version: i64,
    seen_at: i64,
}

#[async_trait]
impl Idempotency for CassandraLinks {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        const OP: &str = "begin a request";
        self.write(OP, self.begin_request(OP, request, plan)).await
    }

    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        const OP: &str = "replace a plan";
        self.write(OP, self.replace_stored_plan(OP, request, plan))
            .await
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        const OP: &str = "finish a request";
        self.write(OP, self.store_outcome(OP, request, token, outcome))
            .await
    }

    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool> {
        const OP: &str = "cancel a request";
        let (namespace, owner) = (&*self.namespace, request.owner.0.cast_signed());
        let values = (namespace, owner, &*request.key, &token.0[..]);
        let decided = self.engine.decide(OP, CANCEL, values);
        match self.write(OP, decided).await? {
            Decided::Applied => Ok(true),
            Decided::Refused => Ok(false),
            Decided::Unknown(error) => Err(error),
        }
    }

    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize> {
        const OP: &str = "forget requests";
        let limit_time = self.engine.settings.background_timeout;
        let forget = self.forget(OP, before, limit);
        self.engine
            .within(OP, limit_time, Effect::Unknown, forget)
            .await
    }
}

impl CassandraLinks {
    async fn begin_request(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        let mut found = self
            .find_request(op, GET, request.owner, &request.key)
            .await?;
        self.lists.add(op, [place(plan.at, request)]).await?;
        let mut doubt = Doubt::default();
        loop {
            let is_kept =
                |record: &IdempotencyRecord| plan.at.since(record.plan.at) <= IDEMPOTENCY_KEPT;
            let decided = match found {
                Some(record) if is_kept(&record) => return Ok(record.reply_to(request, plan)),
                Some(old) => self.replace(op, request, plan, &old.plan).await,
                None => {
                    let values = self.new_request(request, plan);
                    self.engine.decide(op, INSERT, values).await
                }
            };
            match doubt.keep(decided)? {
                Decided::Applied => return Ok(BeginReply::New),
                Decided::Refused => {}
                Decided::Unknown(error) => doubt.note(error),
            }
            // Applied or not, known or not: what is stored now says it all, and the same plan is `New` again.
            let stored = self.find_request(op, GET.serial(), request.owner, &request.key);
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
        loop {
            let found = self.find_request(op, GET.serial(), request.owner, &request.key);
            let found = found.await?.filter(|found| found.plan.token == plan.token);
            let stored = found.ok_or_else(|| {
                let detail = "the idempotency record is gone";
                PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
            })?;
            if stored.plan.version.saturating_add(1) != plan.version || stored.outcome.is_some() {
                return Ok(stored.plan);
            }
            match self.replace(op, request, plan, &stored.plan).await? {
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
            let values = (
                outcome.at.0,
                outcome.ids_to_text(),
                &*self.namespace,
                request.owner.0.cast_signed(),
                &*request.key,
                &token.0[..],
            );
            if let Decided::Applied = self.engine.decide(op, FINISH, values).await? {
                return Ok(outcome);
            }
            let found = self.find_request(op, GET.serial(), request.owner, &request.key);
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
        let found = self.find_request(op, GET, owner, key).await?;
        let Some(record) = found.filter(|record| record.plan.at == at) else {
            return Ok(None);
        };
        let token = record.plan.token;
        let (namespace, owner) = (&*self.namespace, owner.0.cast_signed());
        let values = (namespace, owner, key, &token.0[..], at.0);
        let decided = self.engine.decide(op, FORGET, values).await?;
        Ok(Some(matches!(decided, Decided::Applied)))
    }

    async fn replace(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        plan: &CreationPlan,
        seen: &CreationPlan,
    ) -> PortResult<Decided> {
        let values = Replacement {
            request: self.new_request(request, plan),
            seen_token: &seen.token.0,
            seen_version: seen.version.into(),
            seen_at: seen.at.0,
        };
        self.engine.decide(op, REPLACE, values).await
    }

    fn new_request<'a>(
        &'a self,
        request: &'a IdempotentRequest,
        plan: &'a CreationPlan,
    ) -> NewRequest<'a> {
        NewRequest {
            namespace: &self.namespace,
            owner: request.owner.0.cast_signed(),
            key: &request.key,
            fingerprint: &request.fingerprint,
            request_token: &plan.token.0,
            version: plan.version.into(),
            at: plan.at.0,
            keys: plan.keys_to_text(),
        }
    }

    pub(super) async fn find_request(
        &self,
        op: &'static str,
        cql: Cql,
        owner: OwnerId,
        key: &str,
    ) -> PortResult<Option<IdempotencyRecord>> {
        let values = (&*self.namespace, owner.0.cast_signed(), key);
        let row: Option<RequestRow> = self.engine.first(op, cql, values).await?;
        row.map(|row| row.into_record(op)).transpose()
    }
}

fn bucket_of(at: UnixMillis) -> Vec<u8> {
    sortable(at.0.div_euclid(BUCKET_MILLIS)).to_vec()
}

pub(super) fn place(at: UnixMillis, request: &IdempotentRequest) -> Place {
    let owner = request.owner.0.to_be_bytes();
    Place {
        list: LIST.to_owned(),
        bucket: bucket_of(at),
        position: [&sortable(at.0)[..], &owner, request.key.as_bytes()].concat(),
    }
}

fn request_at(position: &[u8]) -> Option<(UnixMillis, OwnerId, &str)> {
    let (at, rest) = position.split_first_chunk::<8>()?;
    let (owner, key) = rest.split_first_chunk::<8>()?;
    let owner = OwnerId(u64::from_be_bytes(*owner));
    let key = str::from_utf8(key).ok()?;
    Some((UnixMillis(of_sortable(*at)), owner, key))
}
