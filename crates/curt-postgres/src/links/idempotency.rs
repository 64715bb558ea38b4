//! Requests with an idempotency key: their plans and outcomes.

use async_trait::async_trait;
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, Idempotency, IdempotencyRecord, IdempotentRequest,
    RequestToken,
};
use curt_core::{PortError, PortResult, ShardId, UnixMillis};
use tokio_postgres::Row;

use super::{PostgresLinks, check_no_nul, invalid, sql};
use crate::decode::{corrupt, rows_max, small, time};
use crate::engine::{Step, Value, column};
use crate::failure::BACKEND;

#[async_trait]
impl Idempotency for PostgresLinks {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        const OP: &str = "begin a request";
        check_no_nul(OP, std::iter::once(&*request.key))?;
        let (owner, name) = (request.owner.0.cast_signed(), &*request.key);
        let forget: [Value<'_>; 3] = [&owner, &name, &plan.at.minus(IDEMPOTENCY_KEPT).0];
        let (shard, epoch) = self.routed(request);
        let begin: [Value<'_>; 9] = [
            &owner,
            &name,
            &&request.fingerprint[..],
            &&plan.token.0[..],
            &i64::from(plan.version),
            &plan.at.0,
            &plan.keys_to_text(),
            &shard,
            &epoch,
        ];
        let steps = [(sql::FORGET_RECORD, &forget[..]), (sql::BEGIN, &begin)];
        let steps = steps.map(|(sql, values)| Step { sql, values });
        let mut answers = self.tables.engine().await?.transact(OP, &steps).await?;
        let rows = answers.pop().unwrap_or_default();
        let row = rows.first();
        let row = row.ok_or_else(|| PortError::stale_epoch(BACKEND, OP))?;
        Ok(record_of(OP, row)?.reply_to(request, plan))
    }

    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        const OP: &str = "replace a plan";
        let (version, keys) = (i64::from(plan.version), plan.keys_to_text());
        let rest: [Value<'_>; 2] = [&version, &keys];
        let record = self
            .change(OP, sql::REPLACE_PLAN, request, plan.token, &rest)
            .await?;
        let record = record.ok_or_else(|| invalid(OP, "the idempotency record is gone"))?;
        Ok(record.plan)
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        const OP: &str = "finish a request";
        let ids = outcome.ids_to_text();
        let record = self
            .change(OP, sql::FINISH, request, token, &[&ids])
            .await?;
        Ok(record.and_then(|record| record.outcome).unwrap_or(outcome))
    }

    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool> {
        let removed = self.change("cancel a request", sql::CANCEL, request, token, &[]);
        Ok(removed.await?.is_some())
    }

    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize> {
        let values: [Value<'_>; 2] = [&before.0, &rows_max(limit)];
        let engine = self.background().await?;
        let rows = engine.write("forget old requests", sql::FORGET_BEFORE, &values);
        Ok(rows.await?.len())
    }
}

impl PostgresLinks {
    /// Changes the record of a request if it has this token, and returns it as it is then.
    async fn change(
        &self,
        op: &'static str,
        sql: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
        rest: &[Value<'_>],
    ) -> PortResult<Option<IdempotencyRecord>> {
        let (owner, name) = (request.owner.0.cast_signed(), &*request.key);
        let token = &token.0[..];
        let (shard, epoch) = self.routed(request);
        let values: [Value<'_>; 5] = [&owner, &name, &token, &shard, &epoch];
        let values = [&values[..], rest].concat();
        let engine = self.tables.engine().await?;
        let rows = engine.write(op, sql, &values).await?;
        if let Some(row) = rows.first() {
            return record_of(op, row).map(Some);
        }
        let sealed = engine
            .read_latest(op, sql::IS_SEALED, &[&shard, &epoch])
            .await?;
        match sealed.first().map_or(Ok(false), |row| column(op, row, 0))? {
            true => Err(PortError::stale_epoch(BACKEND, op)),
            false => Ok(None),
        }
    }

    /// The shard of a request, and its epoch in the map by which this call was routed.
    fn routed(&self, request: &IdempotentRequest) -> (i16, i64) {
        let shard = ShardId::of_request(request.owner, &request.key);
        let epoch = self.map.epoch(shard).0.cast_signed();
        (shard.number().cast_signed(), epoch)
    }
}

pub(super) fn record_of(op: &'static str, row: &Row) -> PortResult<IdempotencyRecord> {
    let bytes = |index| column::<&[u8]>(op, row, index);
    let fingerprint = bytes(0)?
        .try_into()
        .map_err(|_| corrupt(op, "a fingerprint"))?;
    let token = bytes(1)?.try_into().map_err(|_| corrupt(op, "a token"))?;
    let (at, keys) = (time(op, row, 3)?, column::<&str>(op, row, 4)?);
    let ids = |text| CreationOutcome::ids_of_text(text).ok_or_else(|| corrupt(op, text));
    let ids = column::<Option<&str>>(op, row, 5)?.map(ids).transpose()?;
    Ok(IdempotencyRecord {
        fingerprint,
        plan: CreationPlan {
            token: RequestToken(token),
            version: small(op, column(op, row, 2)?)?,
            at,
            keys: CreationPlan::keys_of_text(keys).ok_or_else(|| corrupt(op, keys))?,
        },
        outcome: ids.map(|ids| CreationOutcome { at, ids }),
    })
}
