//! Requests with an idempotency key, as items. The engine removes those that nobody has forgotten in time.

use async_trait::async_trait;
use curt_adapter_kit::wide_column::links::RequestRows;
use curt_adapter_kit::wide_column::{Decided, ReadMode};
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    CreationOutcome, CreationPlan, IdempotencyRecord, IdempotentRequest, RequestToken,
};
use curt_core::{OwnerId, PortResult, UnixMillis};

use super::DynamoDbLinks;
use crate::failure::corrupt;
use crate::item::{EXPIRES, Item, Key, bytes, expiry, flag, number, text};
use crate::write::{Change, Condition, Write};

fn key_of(owner: OwnerId, key: &str) -> Key {
    Key::item(format!("request/{owner}/{key}"))
}

fn record_of(op: &'static str, item: &Item) -> PortResult<IdempotencyRecord> {
    let keys = CreationPlan::keys_of_text(item.text("keys")?);
    let plan = CreationPlan {
        token: RequestToken(item.fixed("request_token")?),
        version: item.small("version")?,
        at: UnixMillis(item.number("at")?),
        keys: keys.ok_or_else(|| corrupt(op, "planned keys"))?,
    };
    let outcome = match item.flag("finished") {
        false => None,
        true => Some(CreationOutcome {
            at: UnixMillis(item.number("outcome_at")?),
            ids: CreationOutcome::ids_of_text(item.text("outcome")?)
                .ok_or_else(|| corrupt(op, "outcome"))?,
        }),
    };
    Ok(IdempotencyRecord {
        fingerprint: item.fixed("fingerprint")?,
        plan,
        outcome,
    })
}

fn request_row(record: &IdempotencyRecord) -> Vec<Change> {
    let (plan, outcome) = (&record.plan, record.outcome.as_ref());
    vec![
        ("fingerprint", Some(bytes(&record.fingerprint))),
        ("request_token", Some(bytes(&plan.token.0))),
        ("version", Some(number(plan.version))),
        ("at", Some(number(plan.at.0))),
        ("keys", Some(text(&plan.keys_to_text()))),
        ("finished", Some(flag(outcome.is_some()))),
        ("outcome_at", outcome.map(|outcome| number(outcome.at.0))),
        (
            "outcome",
            outcome.map(|outcome| text(&outcome.ids_to_text())),
        ),
        (EXPIRES, Some(expiry(plan.at.plus(IDEMPOTENCY_KEPT)))),
    ]
}

#[async_trait]
impl RequestRows for DynamoDbLinks {
    async fn get(
        &self,
        op: &'static str,
        owner: OwnerId,
        key: &str,
        _mode: ReadMode,
    ) -> PortResult<Option<IdempotencyRecord>> {
        let item = self.engine.get(op, &key_of(owner, key)).await?;
        item.map(|item| record_of(op, &item)).transpose()
    }

    async fn put(
        &self,
        op: &'static str,
        (owner, key): (OwnerId, &str),
        record: &IdempotencyRecord,
        seen: Option<&IdempotencyRecord>,
    ) -> PortResult<Decided> {
        let write = Write::put(key_of(owner, key), request_row(record));
        let write = match seen {
            None => write.when(Condition::Absent),
            Some(seen) => write
                .when_equal("request_token", bytes(&seen.plan.token.0))
                .when_equal("version", number(seen.plan.version))
                .when_equal("at", number(seen.plan.at.0))
                .when_equal("finished", flag(seen.outcome.is_some())),
        };
        self.engine.decide(op, &write).await
    }

    async fn finish(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: &CreationOutcome,
    ) -> PortResult<Decided> {
        let changes = vec![
            ("finished", Some(flag(true))),
            ("outcome_at", Some(number(outcome.at.0))),
            ("outcome", Some(text(&outcome.ids_to_text()))),
        ];
        let write = Write::update(key_of(request.owner, &request.key), changes);
        self.engine.decide(op, &while_open(write, token)).await
    }

    async fn cancel(
        &self,
        op: &'static str,
        request: &IdempotentRequest,
        token: RequestToken,
    ) -> PortResult<Decided> {
        let write = Write::delete(key_of(request.owner, &request.key));
        self.engine.decide(op, &while_open(write, token)).await
    }

    async fn forget(
        &self,
        op: &'static str,
        owner: OwnerId,
        key: &str,
        plan: &CreationPlan,
    ) -> PortResult<Decided> {
        let write = Write::delete(key_of(owner, key))
            .when_equal("request_token", bytes(&plan.token.0))
            .when_equal("at", number(plan.at.0));
        self.engine.decide(op, &write).await
    }
}

/// Only if the request has this token and no outcome.
fn while_open(write: Write, token: RequestToken) -> Write {
    write
        .when_equal("request_token", bytes(&token.0))
        .when_equal("finished", flag(false))
}
