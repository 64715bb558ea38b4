//! Requests with an idempotency key: their plans and outcomes.

use async_trait::async_trait;
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    BeginReply, CreatedAtOnce, CreationOutcome, CreationPlan, Idempotency, IdempotencyRecord,
    IdempotentRequest, RequestToken,
};
use curt_core::{Link, OwnerId, PortResult, ShardId, UnixMillis};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};

use super::{SqliteLinks, invalid, record};
use crate::decode;
use crate::engine::writer::Work;

#[async_trait]
impl Idempotency for SqliteLinks {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        let (request, plan) = (request.clone(), plan.clone());
        let shard = shard_of(&request);
        self.write_owned_shard("begin a request", shard, move |work| {
            let reply = reply(work.connection, &request, &plan)?;
            if reply == BeginReply::New {
                store_plan(work.connection, &request, &plan, None)?;
            }
            Ok(reply)
        })
        .await
    }

    fn can_create_at_once(&self) -> bool {
        true
    }

    async fn create_at_once(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
        links: Vec<Link>,
    ) -> PortResult<CreatedAtOnce> {
        let (request, plan) = (request.clone(), plan.clone());
        let ids = links.iter().map(|link| link.id.clone()).collect();
        let create = move |work: &mut Work<'_>| {
            let mut created = CreatedAtOnce {
                begun: reply(work.connection, &request, &plan)?,
                inserted: Vec::new(),
                outcome: None,
            };
            if created.begun == BeginReply::New {
                let token = Some(plan.token);
                let insert = |link| record::insert_if_absent(work, link, token);
                created.inserted = links.iter().map(insert).collect::<rusqlite::Result<_>>()?;
                created.outcome = CreationOutcome::of(&plan, &created.inserted);
                // With its outcome: storing that later would write the row twice.
                let outcome = created.outcome.as_ref();
                store_plan(work.connection, &request, &plan, outcome)?;
            }
            Ok(created)
        };
        self.write_owned("create links at once", ids, create).await
    }

    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        const OP: &str = "replace a plan";
        let (request, plan) = (request.clone(), plan.clone());
        let shard = shard_of(&request);
        let stored = self.write_owned_shard(OP, shard, move |work| {
            work.connection
                .prepare_cached(
                    "UPDATE idempotency SET plan = ?4, version = ?5 \
                     WHERE owner = ?1 AND key = ?2 AND token = ?3 AND version = ?5 - 1",
                )?
                .execute((
                    request.owner.0.cast_signed(),
                    &*request.key,
                    plan.token.0,
                    plan.keys_to_text(),
                    plan.version,
                ))?;
            let record = find(work.connection, &request)?;
            Ok(record.filter(|record| record.plan.token == plan.token))
        });
        let record = stored.await?;
        let record = record.ok_or_else(|| invalid(OP, "the idempotency record is gone"))?;
        Ok(record.plan)
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        let (request, shard) = (request.clone(), shard_of(request));
        self.write_owned_shard("finish a request", shard, move |work| {
            work.connection
                .prepare_cached(
                    "UPDATE idempotency SET outcome = ?4 \
                         WHERE owner = ?1 AND key = ?2 AND token = ?3 AND outcome IS NULL",
                )?
                .execute((
                    request.owner.0.cast_signed(),
                    &*request.key,
                    token.0,
                    outcome.ids_to_text(),
                ))?;
            let record = find(work.connection, &request)?;
            let record = record.filter(|record| record.plan.token == token);
            Ok(record
                .and_then(|record| record.outcome)
                .unwrap_or_else(|| outcome.clone()))
        })
        .await
    }

    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool> {
        let (request, shard) = (request.clone(), shard_of(request));
        self.write_owned_shard("cancel a request", shard, move |work| {
            let removed = work
                .connection
                .prepare_cached(
                    "DELETE FROM idempotency \
                         WHERE owner = ?1 AND key = ?2 AND token = ?3 AND outcome IS NULL",
                )?
                .execute((request.owner.0.cast_signed(), &*request.key, token.0))?;
            Ok(removed > 0)
        })
        .await
    }

    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize> {
        self.db
            .writer
            .write("forget old requests", limit, move |work| {
                work.connection
                    .prepare_cached(
                        "DELETE FROM idempotency WHERE (owner, key) IN (SELECT owner, key FROM idempotency \
                         WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)",
                    )?
                    .execute((before.0, i64::try_from(limit).unwrap_or(i64::MAX)))
            })
            .await
    }
}

/// Puts a record as another node had it in the place of what is there.
pub(super) fn import(
    connection: &Connection,
    owner: OwnerId,
    key: &str,
    record: Option<&IdempotencyRecord>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM idempotency WHERE owner = ?1 AND key = ?2")?
        .execute((owner.0.cast_signed(), key))?;
    let Some(record) = record else {
        return Ok(());
    };
    let request = IdempotentRequest {
        owner,
        key: key.into(),
        fingerprint: record.fingerprint,
    };
    store_plan(connection, &request, &record.plan, record.outcome.as_ref())
}

/// What a request with this plan is replied. `New`: the plan is to be stored.
fn reply(
    connection: &Connection,
    request: &IdempotentRequest,
    plan: &CreationPlan,
) -> rusqlite::Result<BeginReply> {
    let oldest_kept = plan.at.minus(IDEMPOTENCY_KEPT);
    let found = find(connection, request)?;
    let found = found.filter(|record| record.plan.at >= oldest_kept);
    Ok(found.map_or(BeginReply::New, |record| record.reply_to(request, plan)))
}

fn store_plan(
    connection: &Connection,
    request: &IdempotentRequest,
    plan: &CreationPlan,
    outcome: Option<&CreationOutcome>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO idempotency (owner, key, fingerprint, token, version, plan, created_at, outcome) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            request.owner.0.cast_signed(),
            &*request.key,
            request.fingerprint,
            plan.token.0,
            plan.version,
            plan.keys_to_text(),
            plan.at.0,
            outcome.map(CreationOutcome::ids_to_text),
        ))
        .map(drop)
}

pub(super) fn find(
    connection: &Connection,
    request: &IdempotentRequest,
) -> rusqlite::Result<Option<IdempotencyRecord>> {
    connection
        .prepare_cached(
            "SELECT fingerprint, token, version, plan, created_at, outcome FROM idempotency \
             WHERE owner = ?1 AND key = ?2",
        )?
        .query_row((request.owner.0.cast_signed(), &*request.key), |row| {
            let at = UnixMillis(row.get(4)?);
            let plan = row.get_ref(3)?.as_str()?;
            let keys = CreationPlan::keys_of_text(plan);
            let outcome = row.get_ref(5)?.as_str_or_null()?;
            let ids = |text| {
                let ids = CreationOutcome::ids_of_text(text);
                ids.ok_or_else(|| decode::unknown(5, Type::Text, text))
            };
            Ok(IdempotencyRecord {
                fingerprint: row.get(0)?,
                plan: CreationPlan {
                    token: RequestToken(row.get(1)?),
                    version: row.get(2)?,
                    at,
                    keys: keys.ok_or_else(|| decode::unknown(3, Type::Text, plan))?,
                },
                outcome: outcome
                    .map(ids)
                    .transpose()?
                    .map(|ids| CreationOutcome { at, ids }),
            })
        })
        .optional()
}

fn shard_of(request: &IdempotentRequest) -> ShardId {
    ShardId::of_request(request.owner, &request.key)
}
