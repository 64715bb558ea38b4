use std::sync::Arc;

use anyhow::Result;
use curt_core::ports::SpendReply;
use curt_core::{Link, LinkState, Revision};

use super::{Port, add, changed};
use crate::conformance::{RACERS, race, same};
use crate::sample::{NOW, SampleWrites, id, later, link, released};

fn limited(key: &str, max_clicks: u64) -> Link {
    Link {
        max_clicks: Some(max_clicks),
        ..link(key)
    }
}

/// Spends visits of "a" until `times` are tried, and says how many were granted.
async fn granted(store: &Port, seen: Revision, times: usize) -> Result<usize> {
    let mut granted = 0;
    for _ in 0..times {
        match store.spend_click(&id("a"), seen).await? {
            SpendReply::Granted => granted += 1,
            SpendReply::Exhausted => {}
            SpendReply::Stale => anyhow::bail!("the link is as it was seen"),
        }
    }
    Ok(granted)
}

async fn spent(store: &Port) -> Result<u64> {
    Ok(store.clicks_spent(&id("a")).await?)
}

pub async fn as_many_clicks_as_allowed_are_granted(store: Port) -> Result<()> {
    add(&store, [limited("a", 3), limited("b", 1)]).await?;
    same("before", spent(&store).await?, 0)?;
    same("granted", granted(&store, Revision::FIRST, 5).await?, 3)?;
    same("spent", spent(&store).await?, 3)?;
    let other = store.spend_click(&id("b"), Revision::FIRST).await?;
    same("another link", other, SpendReply::Granted)
}

pub async fn racers_are_granted_what_is_left(store: Port) -> Result<()> {
    let most = RACERS / 4;
    add(&store, [limited("a", most as u64)]).await?;
    let replies = race(RACERS, |_| {
        let store = Arc::clone(&store);
        async move { store.spend_click(&id("a"), Revision::FIRST).await }
    })
    .await?;
    let count = |wanted| replies.iter().filter(|reply| **reply == wanted).count();
    same("granted", count(SpendReply::Granted), most)?;
    same("exhausted", count(SpendReply::Exhausted), RACERS - most)
}

pub async fn a_link_without_a_limit_grants_all(store: Port) -> Result<()> {
    add(&store, [link("a")]).await?;
    same("granted", granted(&store, Revision::FIRST, 5).await?, 5)?;
    same("spent", spent(&store).await?, 0)
}

pub async fn a_limit_of_nothing_grants_nothing(store: Port) -> Result<()> {
    add(&store, [limited("a", 0)]).await?;
    same("granted", granted(&store, Revision::FIRST, 2).await?, 0)
}

pub async fn only_the_link_that_was_seen_grants(store: Port) -> Result<()> {
    let absent = store.spend_click(&id("a"), Revision::FIRST).await?;
    same("absent", absent, SpendReply::Stale)?;
    same("spent of nothing", spent(&store).await?, 0)?;
    add(&store, [limited("a", 9)]).await?;
    let second = Revision::FIRST.edited();
    let early = store.spend_click(&id("a"), second).await?;
    same("another revision", early, SpendReply::Stale)?;
    let off = Link {
        state: LinkState::Disabled,
        ..limited("a", 9)
    };
    changed(&store, store.update_at(off, Revision::FIRST).await?).await?;
    let disabled = store.spend_click(&id("a"), second).await?;
    same("switched off", disabled, SpendReply::Stale)?;
    let tombstone = changed(&store, store.delete(&id("a"), NOW).await?).await?;
    let deleted = store.spend_click(&id("a"), tombstone.revision).await?;
    same("a tombstone", deleted, SpendReply::Stale)?;
    same("spent", spent(&store).await?, 0)
}

pub async fn an_edit_keeps_what_was_spent(store: Port) -> Result<()> {
    add(&store, [limited("a", 3)]).await?;
    let first = Revision::FIRST;
    same("of 3", granted(&store, first, 9).await?, 3)?;
    changed(&store, store.update_at(limited("a", 5), first).await?).await?;
    same("of 5", granted(&store, first.edited(), 9).await?, 2)?;
    changed(
        &store,
        store.update_at(limited("a", 4), first.edited()).await?,
    )
    .await?;
    let third = first.edited().edited();
    same("of 4", granted(&store, third, 9).await?, 0)?;
    same("spent", spent(&store).await?, 5)
}

/// Rows that come after the release may take the place of those before.
pub async fn a_released_key_starts_over(store: Port) -> Result<()> {
    add(&store, [limited("a", 2)]).await?;
    same("before", granted(&store, Revision::FIRST, 9).await?, 2)?;
    changed(&store, store.delete(&id("a"), NOW).await?).await?;
    let gone = store.release(later(1), 9).await?;
    same("released", gone, vec![released("a", 1)])?;
    add(&store, [limited("b", 2)]).await?;
    let again = store.insert(vec![limited("a", 2)]).await?;
    same("free again", again, vec![true])?;
    for key in ["a", "b"] {
        same(key, store.clicks_spent(&id(key)).await?, 0)?;
    }
    let reborn = Revision::FIRST.reborn();
    same("after", granted(&store, reborn, 9).await?, 2)
}
