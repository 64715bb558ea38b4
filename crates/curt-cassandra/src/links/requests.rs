use async_trait::async_trait;
use curt_adapter_kit::wide_column::links::RequestRows;
use curt_adapter_kit::wide_column::{Decided, ReadMode};
use curt_core::ports::{
    CreationOutcome, CreationPlan, IdempotencyRecord, IdempotentRequest, RequestToken,
};
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::value::MaybeUnset;
use scylla::{DeserializeRow, SerializeRow};

use super::CassandraLinks;
use super::record::{maybe, small};
use crate::failure::corrupt;
use crate::statement::Cql;

const GET: Cql = Cql::read(
    "SELECT fingerprint, request_token, version, at, keys, finished, outcome_at, outcome FROM KEYSPACE.requests \
     WHERE namespace = ? AND owner = ? AND key = ?",
);
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.requests (namespace, owner, key, fingerprint, request_token, version, at, keys, finished, \
     outcome_at, outcome) VALUES (:namespace, :owner, :key, :fingerprint, :request_token, :version, :at, :keys, \
     :finished, :outcome_at, :outcome) IF NOT EXISTS",
);
const REPLACE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.requests SET fingerprint = :fingerprint, request_token = :request_token, version = :version, \
     at = :at, keys = :keys, finished = :finished, outcome_at = :outcome_at, outcome = :outcome \
     WHERE namespace = :namespace AND owner = :owner AND key = :key \
     IF request_token = :seen_token AND version = :seen_version AND at = :seen_at AND finished = :seen_finished",
);
const FINISH: Cql = Cql::conditional(
    "UPDATE KEYSPACE.requests SET finished = true, outcome_at = ?, outcome = ? \
     WHERE namespace = ? AND owner = ? AND key = ? IF request_token = ? AND finished = false",
);
const CANCEL: Cql = Cql::conditional(
    "DELETE FROM KEYSPACE.requests WHERE namespace = ? AND owner = ? AND key = ? IF request_token = ? AND finished = false",
);
const FORGET: Cql = Cql::conditional(
    "DELETE FROM KEYSPACE.requests WHERE namespace = ? AND owner = ? AND key = ? IF request_token = ? AND at = ?",
);

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
struct RequestWrite<'a> {
    namespace: &'a str,
    owner: i64,
    key: &'a str,
    fingerprint: &'a [u8],
    request_token: &'a [u8],
    version: i64,
    at: i64,
    keys: String,
    finished: bool,
    outcome_at: MaybeUnset<Option<i64>>,
    outcome: MaybeUnset<Option<String>>,
}

#[derive(SerializeRow)]
struct RequestReplacement<'a> {
    #[scylla(flatten)]
    request: RequestWrite<'a>,
    seen_token: &'a [u8],
    seen_version: i64,
    seen_at: i64,
    seen_finished: bool,
}

#[async_trait]
impl RequestRows for CassandraLinks {
    async fn get(
        &self,
        op: &'static str,
        owner: OwnerId,
        key: &str,
        mode: ReadMode,
    ) -> PortResult<Option<IdempotencyRecord>> {
        let values = (&*self.namespace, owner.0.cast_signed(), key);
        let row: Option<RequestRow> = self.engine.first(op, GET.at(mode), values).await?;
        row.map(|row| row.into_record(op)).transpose()
    }

    async fn put(
        &self,
        op: &'static str,
        name: (OwnerId, &str),
        record: &IdempotencyRecord,
        seen: Option<&IdempotencyRecord>,
    ) -> PortResult<Decided> {
        let request = self.request_write(name, record, seen.is_some());
        let Some(seen) = seen else {
            return self.engine.decide(op, INSERT, request).await;
        };
        let values = RequestReplacement {
            request,
            seen_token: &seen.plan.token.0,
            seen_version: seen.plan.version.into(),
            seen_at: seen.plan.at.0,
            seen_finished: seen.outcome.is_some(),
        };
        self.engine.decide(op, REPLACE, values).await
    }

    async fn finish(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: &CreationOutcome,
    ) -> PortResult<Decided> {
        let values = (
            outcome.at.0,
            outcome.ids_to_text(),
            &*self.namespace,
            request.owner.0.cast_signed(),
            &*request.key,
            &token.0[..],
        );
        self.engine.decide(op, FINISH, values).await
    }

    async fn cancel(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
    ) -> PortResult<Decided> {
        let (namespace, owner) = (&*self.namespace, request.owner.0.cast_signed());
        let values = (namespace, owner, &*request.key, &token.0[..]);
        self.engine.decide(op, CANCEL, values).await
    }

    async fn forget(
        &self,
        op: &'static str,
        owner: OwnerId,
        key: &str,
        plan: &CreationPlan,
    ) -> PortResult<Decided> {
        let (namespace, owner) = (&*self.namespace, owner.0.cast_signed());
        let values = (namespace, owner, key, &plan.token.0[..], plan.at.0);
        self.engine.decide(op, FORGET, values).await
    }
}

impl CassandraLinks {
    /// `is_over`: there is a request already, of which nothing may be left.
    fn request_write<'a>(
        &'a self,
        (owner, key): (OwnerId, &'a str),
        record: &'a IdempotencyRecord,
        is_over: bool,
    ) -> RequestWrite<'a> {
        let (plan, outcome) = (&record.plan, record.outcome.as_ref());
        RequestWrite {
            namespace: &self.namespace,
            owner: owner.0.cast_signed(),
            key,
            fingerprint: &record.fingerprint,
            request_token: &plan.token.0,
            version: plan.version.into(),
            at: plan.at.0,
            keys: plan.keys_to_text(),
            finished: outcome.is_some(),
            outcome_at: maybe(outcome.map(|outcome| outcome.at.0), is_over),
            outcome: maybe(outcome.map(CreationOutcome::ids_to_text), is_over),
        }
    }
}
