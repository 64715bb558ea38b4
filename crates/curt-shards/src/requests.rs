//! Requests with an idempotency key. Each has a shard of its own, by owner and key, and its record is on the node that owns
//! that shard; its links are wherever theirs are, and carry its token.

use async_trait::async_trait;
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, Idempotency, IdempotentRequest, RequestToken,
};
use curt_core::{PortResult, ShardId, UnixMillis};

use crate::router::{ShardRouter, call_owner};

#[async_trait]
impl Idempotency for ShardRouter {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        let op = "begin a request";
        call_owner!(self, op, shard_of(request), node, ports => {
            self.write_unless_failing(node, op, ports.begin(request, plan))
        })
    }

    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        let shard = shard_of(request);
        call_owner!(self, "replace a plan", shard, ports => ports.replace_plan(request, plan))
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        let shard = shard_of(request);
        call_owner!(self, "finish a request", shard, ports => ports.finish(request, token, outcome.clone()))
    }

    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool> {
        let shard = shard_of(request);
        call_owner!(self, "cancel a request", shard, ports => ports.cancel(request, token))
    }

    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize> {
        let routing = self.routing().await?;
        let mut forgotten = 0;
        let mut answers = self.answers("forget old requests");
        for (node, ports) in self.all_ports(&routing).await {
            if forgotten < limit {
                let answer = match ports {
                    Ok(ports) => ports.forget_before(before, limit - forgotten).await,
                    Err(error) => Err(error),
                };
                forgotten += answers.note(node, answer).unwrap_or(0);
            }
        }
        answers.into_result(forgotten)
    }
}

fn shard_of(request: &IdempotentRequest) -> ShardId {
    ShardId::of_request(request.owner, &request.key)
}
