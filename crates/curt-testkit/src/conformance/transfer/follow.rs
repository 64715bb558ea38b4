//! Clauses of what is remembered for a copy.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use curt_core::ports::{FOLLOWER_MIN, Transferred as _};
use curt_core::{ErrorKind, Link, Revision};

use super::LinkTransferPorts as Ports;
use super::samples::{by_name, export};
use crate::conformance::{refused, same};
use crate::sample::{NOW, SampleWrites, full_link, id, idempotent, link, plan};

pub(super) const FOLLOWER: u64 = FOLLOWER_MIN + 7;

pub async fn changes_are_followed_until_they_are_forgotten(ports: Ports) -> Result<()> {
    let Ports {
        links, transfer, ..
    } = &ports;
    links
        .insert(vec![link("before"), link("edited"), link("released")])
        .await?;
    let limited = Link {
        max_clicks: Some(5),
        ..link("limited")
    };
    links.insert(vec![limited]).await?;
    transfer.follow_changes(FOLLOWER).await?;
    transfer.follow_changes(FOLLOWER).await?;
    let none = transfer.followed_changes(FOLLOWER).await?;
    ensure!(none.items.is_empty() && none.is_end, "{none:?}");
    links.insert(vec![link("new")]).await?;
    links.spend_click(&id("limited"), Revision::FIRST).await?;
    links
        .update_at(full_link("edited"), Revision::FIRST)
        .await?;
    links.delete(&id("released"), NOW).await?;
    links.release(NOW, 9).await?;
    links
        .begin(&idempotent("request", 1), &plan(1, &["x"]))
        .await?;
    let changes = transfer.followed_changes(FOLLOWER).await?;
    ensure!(changes.is_end, "there are few changes: {changes:?}");
    let all = by_name(export(&ports).await?)?;
    let names: BTreeSet<_> = changes.items.iter().map(|item| item.name()).collect();
    let before = id("before").to_string();
    let want = all.keys().filter(|name| ***name != *before).cloned();
    same("what has changed", names, want.collect())?;
    for item in &changes.items {
        same("as it is now", all.get(&item.name()), Some(item))?;
    }
    let again = transfer.followed_changes(FOLLOWER).await?;
    same("not forgotten", again.numbers.len(), changes.numbers.len())?;
    transfer.forget_followed(&changes.numbers).await?;
    transfer.forget_followed(&changes.numbers).await?;
    let none = transfer.followed_changes(FOLLOWER).await?;
    ensure!(none.numbers.is_empty() && none.is_end, "{none:?}");
    transfer.stop_following(Some(FOLLOWER)).await?;
    transfer.stop_following(Some(FOLLOWER)).await?;
    refused(
        "changes for nobody",
        transfer.followed_changes(FOLLOWER).await,
        ErrorKind::StaleEpoch,
    )
}
