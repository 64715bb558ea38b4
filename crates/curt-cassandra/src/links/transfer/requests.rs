//! Requests with idempotency keys.

use curt_core::ports::{
    IdempotencyRecord, IdempotentRequest, LinkItem, Replacement, ShardItem, Transferred as _,
};
use curt_core::{OwnerId, PortResult, ShardId};
use scylla::SerializeRow;

use super::{OP_EXPORT, OP_IMPORT, cql};
use crate::links::CassandraLinks;
use crate::links::idempotency::{FORGET, GET, place};
use crate::pause::pause;
use crate::statement::Decided;

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
    outcome_at: Option<i64>,
    outcome: Option<String>,
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

impl CassandraLinks {
    pub(super) async fn find_request_item(&self, owner: i64, key: &str) -> PortResult<ShardItem> {
        let owner = OwnerId(owner.cast_unsigned());
        let record = self.find_request(OP_EXPORT, GET, owner, key).await?;
        Ok(ShardItem::Request {
            owner,
            key: key.into(),
            record: record.map(Box::new),
        })
    }

    pub(super) async fn import_request(&self, item: &LinkItem) -> PortResult<Replacement> {
        let ShardItem::Request { owner, key, record } = &item.item else {
            return Ok(Replacement::Same);
        };
        let mut is_written = false;
        loop {
            let stored = self.find_request(OP_IMPORT, GET.serial(), *owner, key);
            let stored = stored.await?;
            let there = ShardItem::Request {
                owner: *owner,
                key: key.clone(),
                record: stored.clone().map(Box::new),
            };
            let shard = ShardId::of_request(*owner, key);
            let decided = item.replaces(&LinkItem { shard, item: there });
            match decided {
                Replacement::Write => {}
                Replacement::Same if is_written => return Ok(Replacement::Write),
                decided => return Ok(decided),
            }
            match self
                .write_request(*owner, key, record.as_deref(), stored)
                .await?
            {
                Decided::Applied => return Ok(Replacement::Write),
                Decided::Refused => {}
                Decided::Unknown(_) => is_written = true,
            }
            pause().await;
        }
    }

    async fn write_request(
        &self,
        owner: OwnerId,
        key: &str,
        record: Option<&IdempotencyRecord>,
        stored: Option<IdempotencyRecord>,
    ) -> PortResult<Decided> {
        let Some(record) = record else {
            return self.forget_request(owner, key, stored).await;
        };
        let request = IdempotentRequest {
            owner,
            key: key.into(),
            fingerprint: record.fingerprint,
        };
        self.lists
            .add(OP_IMPORT, [place(record.plan.at, &request)])
            .await?;
        let outcome = record.outcome.as_ref();
        let request = RequestWrite {
            namespace: &self.namespace,
            owner: owner.0.cast_signed(),
            key,
            fingerprint: &record.fingerprint,
            request_token: &record.plan.token.0,
            version: record.plan.version.into(),
            at: record.plan.at.0,
            keys: record.plan.keys_to_text(),
            finished: outcome.is_some(),
            outcome_at: outcome.map(|outcome| outcome.at.0),
            outcome: outcome.map(|outcome| outcome.ids_to_text()),
        };
        let Some(stored) = stored else {
            return self
                .engine
                .decide(OP_IMPORT, cql::INSERT_REQUEST, request)
                .await;
        };
        let values = RequestReplacement {
            request,
            seen_token: &stored.plan.token.0,
            seen_version: stored.plan.version.into(),
            seen_at: stored.plan.at.0,
            seen_finished: stored.outcome.is_some(),
        };
        self.engine
            .decide(OP_IMPORT, cql::REPLACE_REQUEST, values)
            .await
    }

    async fn forget_request(
        &self,
        owner: OwnerId,
        key: &str,
        stored: Option<IdempotencyRecord>,
    ) -> PortResult<Decided> {
        let Some(stored) = stored else {
            return Ok(Decided::Applied);
        };
        let (namespace, owner) = (&*self.namespace, owner.0.cast_signed());
        let values = (
            namespace,
            owner,
            key,
            &stored.plan.token.0[..],
            stored.plan.at.0,
        );
        self.engine.decide(OP_IMPORT, FORGET, values).await
    }
}
