//! Clauses of [`LinkShards`](curt_core::ports::LinkShards) about what is refused before, while and after a shard moves.

use anyhow::Result;
use curt_core::Epoch;
use curt_core::ports::{BeginReply, CreationOutcome, CreationPlan, ListQuery};

use super::copies::{FENCE, Port, STALE, at_epoch, own_keys, request_name, shard};
use crate::conformance::{refused, same};
use crate::sample::{SampleWrites, id, idempotent, link, plan};

pub async fn a_shard_that_is_copied_takes_no_writes_before_its_epoch_l4(node: Port) -> Result<()> {
    node.begin_import(shard(), FENCE, Epoch(1)).await?;
    let early = at_epoch(&node, 0)
        .insert_if_absent(vec![link("a")], None)
        .await;
    refused("an insert", early, STALE)?;
    same(
        "at its epoch",
        at_epoch(&node, 1).insert(vec![link("a")]).await?,
        vec![true],
    )
}

pub async fn a_retired_shard_is_not_read_through_an_old_map(node: Port) -> Result<()> {
    let (old, new) = (at_epoch(&node, 0), at_epoch(&node, 1));
    old.insert(vec![link("a"), link("b")]).await?;
    node.seal(shard(), Epoch(2)).await?;
    same(
        "while it is sealed",
        old.get(&id("a")).await?,
        Some(link("a")),
    )?;
    node.retire(shard(), FENCE, Epoch(1)).await?;
    refused("a link", old.get(&id("a")).await, STALE)?;
    refused(
        "an absent link",
        old.get(&id(&own_keys().next().unwrap_or_default())).await,
        STALE,
    )?;
    refused("links", old.get_many(&[id("b"), id("a")]).await, STALE)?;
    refused("its clicks", old.clicks_spent(&id("a")).await, STALE)?;
    let all = ListQuery {
        limit: 9,
        ..ListQuery::default()
    };
    refused("a list", old.list(&all).await.map(|page| page.links), STALE)?;
    same("another shard", old.get(&id("b")).await?, Some(link("b")))?;
    new.get(&id("a")).await?;
    new.list(&all).await?;
    Ok(())
}

pub async fn a_request_of_a_sealed_shard_is_refused_l4(node: Port) -> Result<()> {
    let (old, new) = (at_epoch(&node, 0), at_epoch(&node, 1));
    let (own, other) = (
        idempotent(&request_name(true), 1),
        idempotent(&request_name(false), 1),
    );
    let plan = plan(1, &["x"]);
    old.begin(&own, &plan).await?;
    node.seal(shard(), Epoch(1)).await?;
    let outcome = CreationOutcome {
        at: plan.at,
        ids: vec![None],
    };
    refused("begin", old.begin(&own, &plan).await, STALE)?;
    refused(
        "finish",
        old.finish(&own, plan.token, outcome.clone()).await,
        STALE,
    )?;
    refused("cancel", old.cancel(&own, plan.token).await, STALE)?;
    let next = CreationPlan {
        version: 1,
        ..plan.clone()
    };
    refused("replace", old.replace_plan(&own, &next).await, STALE)?;
    same(
        "another shard",
        old.begin(&other, &plan).await?,
        BeginReply::New,
    )?;
    same(
        "by the new map",
        new.begin(&own, &plan).await?,
        BeginReply::New,
    )?;
    same(
        "its outcome",
        new.finish(&own, plan.token, outcome.clone()).await?,
        outcome,
    )
}
