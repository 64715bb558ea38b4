//! Clauses of copies of what can be a node of many.

use anyhow::Result;
use curt_core::{Epoch, ErrorKind, ShardId};

use super::follow::FOLLOWER;
use super::samples::{import, item_of, wrote};
use super::{NodeTransferPorts, NodeTransferPorts as Ports};
use crate::conformance::{refused, same};
use crate::sample::{id, link};

pub async fn one_copy_follows_at_a_time(ports: Ports) -> Result<()> {
    const STALE: ErrorKind = ErrorKind::StaleEpoch;
    let (transfer, shards) = (&ports.ports.transfer, &ports.shards);
    let shard = ShardId::of(&id("a"));
    shards.track_changes(shard, 3).await?;
    refused(
        "while a shard moves",
        transfer.follow_changes(FOLLOWER).await,
        STALE,
    )?;
    transfer.stop_following(None).await?;
    shards.track_changes(shard, 3).await?;
    shards.stop_tracking(shard, 3).await?;
    transfer.follow_changes(FOLLOWER).await?;
    refused(
        "another copy",
        transfer.follow_changes(FOLLOWER + 1).await,
        STALE,
    )?;
    refused(
        "its changes",
        transfer.followed_changes(FOLLOWER + 1).await,
        STALE,
    )?;
    refused(
        "its end",
        transfer.stop_following(Some(FOLLOWER + 1)).await,
        STALE,
    )?;
    refused("a mover", shards.track_changes(shard, 3).await, STALE)?;
    transfer.followed_changes(FOLLOWER).await?;
    transfer.stop_following(None).await?;
    transfer.follow_changes(FOLLOWER + 1).await?;
    Ok(())
}

pub async fn a_sealed_shard_is_refused_l4(ports: Ports) -> Result<()> {
    let sealed = ShardId::of(&id("a"));
    let NodeTransferPorts { ports, shards } = &ports;
    let transfer = &ports.transfer;
    shards.seal(sealed, Epoch(1)).await?;
    let items = [item_of(link("a"))?, item_of(link("b"))?];
    let refusal = transfer.import_all(&items).await;
    refused("an import", refusal, ErrorKind::StaleEpoch)?;
    same("L-4: the link", ports.links.get(&id("a")).await?, None)?;
    same("another", import(ports, &items[1..]).await?, wrote(1))
}
