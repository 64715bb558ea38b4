use async_trait::async_trait;
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, Idempotency, IdempotencyRecord, IdempotentRequest,
    RequestToken,
};
use curt_core::{PortResult, UnixMillis};

use super::{DistributedLinks, check_no_nul, invalid, sql};
use crate::decode::{corrupt, rows_max};
use crate::engine::{Step, Value, column};
use crate::links::idempotency::record_of;

#[async_trait]
impl Idempotency for DistributedLinks {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        const OP: &str = "begin a request";
        check_no_nul(OP, std::iter::once(&*request.key))?;
        let (owner, name) = (request.owner.0.cast_signed(), &*request.key);
        let forget: [Value<'_>; 3] = [&owner, &name, &plan.at.minus(IDEMPOTENCY_KEPT).0];
        let begin: [Value<'_>; 7] = [
            &owner,
            &name,
            &&request.fingerprint[..],
            &&plan.token.0[..],
            &i64::from(plan.version),
            &plan.at.0,
            &plan.keys_to_text(),
        ];
        let steps = [(sql::FORGET_RECORD, &forget[..]), (sql::BEGIN, &begin)];
        let steps = steps.map(|(sql, values)| Step { sql, values });
        let mut answers = self.tables.engine().await?.transact(OP, &steps).await?;
        let rows = answers.pop().unwrap_or_default();
        let row = rows.first().ok_or_else(|| corrupt(OP, "no record"))?;
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
        const OP: &str = "forget old requests";
        let engine = self.background().await?;
        let values: [Value<'_>; 2] = [&before.0, &rows_max(limit)];
        let old = engine.read(OP, sql::OLD_RECORDS, &values).await?;
        for row in &old {
            let (owner, name): (i64, &str) = (column(OP, row, 0)?, column(OP, row, 1)?);
            let values: [Value<'_>; 3] = [&owner, &name, &before.0];
            engine.write(OP, sql::FORGET_RECORD, &values).await?;
        }
        Ok(old.len())
    }
}

impl DistributedLinks {
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
        let values: [Value<'_>; 3] = [&owner, &name, &token];
        let values = [&values[..], rest].concat();
        let rows = self.tables.engine().await?.write(op, sql, &values).await?;
        rows.first().map(|row| record_of(op, row)).transpose()
    }
}
