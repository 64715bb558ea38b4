use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{ChangeReply, LinkCounts, SpendReply};
use curt_core::{DomainId, KeyOrigin, Link, LinkId, LinkState, Revision};

use super::{Seeded, add, changed, expect_counts, ids, stored};
use crate::conformance::{RACERS, race, same};
use crate::sample::{NOW, SampleWrites, full_link, id, later, link, released};

/// A link to claim a key for: its own key is not used.
fn wish(n: usize) -> Link {
    Link {
        origin: KeyOrigin::Claim,
        ..link(&format!("wish{n}"))
    }
}

fn seeds(count: usize) -> Vec<LinkId> {
    (0..count).map(|n| id(&format!("seed{n:03}"))).collect()
}

pub async fn seeding_skips_what_exists(store: Seeded) -> Result<()> {
    add(&store, [link("seed001")]).await?;
    same("new", store.seed(&seeds(4)).await?, 3)?;
    same("called twice", store.seed(&seeds(4)).await?, 0)?;
    same("one twice", store.seed(&[id("x"), id("x")]).await?, 1)?;
    same(
        "the link",
        stored(&store, &id("seed001")).await?,
        link("seed001"),
    )?;
    let counts = LinkCounts {
        created: vec![(KeyOrigin::Ledger, 1)],
        live: 1,
        seeded: 4,
        ..LinkCounts::default()
    };
    expect_counts(&store, "seeding", &counts).await
}

pub async fn a_seed_is_nobodys(store: Seeded) -> Result<()> {
    store.seed(&seeds(1)).await?;
    let seed = stored(&store, &id("seed000")).await?;
    same("its state", seed.state, LinkState::Seeded)?;
    let got = store.update_at(link("seed000"), seed.revision).await?;
    same("not to be edited", got, ChangeReply::Absent)?;
    let gone = store.delete_at(&seed.id, seed.revision, NOW).await?;
    same("not to be deleted", gone, ChangeReply::Absent)?;
    let spent = store.spend_click(&seed.id, seed.revision).await?;
    same("without clicks", spent, SpendReply::Stale)?;
    let insert = store.insert(vec![link("seed000")]).await?;
    same("K-1: taken", insert, vec![false])?;
    let listed = store.list(&super::list::query()).await?;
    same("not listed", listed.links, vec![])?;
    same("not expired", store.ended(later(9), 9).await?, vec![])?;
    same("not released", store.release(later(9), 9).await?, vec![])?;
    same("still a seed", store.counts().await?.seeded, 1)
}

pub async fn seeds_are_counted_k2(store: Seeded) -> Result<()> {
    let mut want = LinkCounts::default();
    store.seed(&seeds(2)).await?;
    want.seeded = 2;
    expect_counts(&store, "seeding", &want).await?;
    let claimed = store.claim(vec![wish(0)]).await?;
    want.created = vec![(KeyOrigin::Claim, 1)];
    (want.seeded, want.live) = (1, 1);
    expect_counts(&store, "a claim", &want).await?;
    changed(&store, store.delete(&claimed[0].id, NOW).await?).await?;
    (want.live, want.deleted) = (0, 1);
    expect_counts(&store, "the deletion of a claimed link", &want).await?;
    store.release(NOW, 10).await?;
    want.deleted = 0;
    expect_counts(&store, "its release", &want).await
}

pub async fn a_claim_gives_each_link_a_seed_of_its_own(store: Seeded) -> Result<()> {
    store.seed(&seeds(10)).await?;
    let wishes: Vec<Link> = (0..4).map(wish).collect();
    let claimed = store.claim(wishes.clone()).await?;
    same("claimed", claimed.len(), 4)?;
    for (got, wished) in claimed.iter().zip(wishes) {
        ensure!(seeds(10).contains(&got.id), "{} was no seed", got.id);
        let want = Link {
            id: got.id.clone(),
            revision: Revision::FIRST,
            ..wished
        };
        same("in order", got.clone(), want)?;
        same("as stored", stored(&store, &got.id).await?, got.clone())?;
    }
    let distinct: HashSet<LinkId> = ids(&claimed).into_iter().collect();
    same("K-1: distinct keys", distinct.len(), 4)?;
    let counts = LinkCounts {
        created: vec![(KeyOrigin::Claim, 4)],
        live: 4,
        seeded: 6,
        ..LinkCounts::default()
    };
    expect_counts(&store, "a claim", &counts).await
}

pub async fn a_claim_keeps_the_whole_link(store: Seeded) -> Result<()> {
    store.seed(&seeds(1)).await?;
    let before = stored(&store, &id("seed000")).await?.revision;
    let claimed = store.claim(vec![full_link("ignored")]).await?;
    let want = Link {
        id: id("seed000"),
        revision: before.reborn(),
        ..full_link("ignored")
    };
    same("the reply", claimed, vec![want.clone()])?;
    same("as stored", stored(&store, &id("seed000")).await?, want)?;
    same("no other row", store.get(&id("ignored")).await?, None)
}

pub async fn a_claim_serves_the_first_when_seeds_run_out(store: Seeded) -> Result<()> {
    store.seed(&seeds(2)).await?;
    let claimed = store.claim((0..5).map(wish).collect()).await?;
    let targets: Vec<_> = claimed.iter().map(|link| link.target.clone()).collect();
    same(
        "the first ones",
        targets,
        vec![wish(0).target, wish(1).target],
    )?;
    let none = store.claim(vec![wish(9)]).await?;
    same("none left", none, vec![])?;
    let counts = LinkCounts {
        created: vec![(KeyOrigin::Claim, 2)],
        live: 2,
        ..LinkCounts::default()
    };
    expect_counts(&store, "the last seed", &counts).await
}

pub async fn a_claim_stays_in_its_domain(store: Seeded) -> Result<()> {
    store.seed(&seeds(1)).await?;
    let mut other = wish(0);
    other.id.domain = DomainId(7);
    let none = store.claim(vec![other.clone()]).await?;
    same("no seed there", none, vec![])?;
    let mut seed = id("there");
    seed.domain = DomainId(7);
    store.seed(std::slice::from_ref(&seed)).await?;
    let claimed = store.claim(vec![other]).await?;
    same("its own", ids(&claimed), vec![seed])
}

pub async fn racing_claims_never_share_a_seed_k1(store: Seeded) -> Result<()> {
    const SEEDS: usize = 100;
    store.seed(&seeds(SEEDS)).await?;
    let replies = race(RACERS, |n| {
        let store = Arc::clone(&store);
        async move { store.claim(vec![wish(n), wish(n + 1_000)]).await }
    })
    .await?;
    let mut claimed = Vec::new();
    for links in replies {
        claimed.extend(ids(&links));
    }
    let distinct: HashSet<&LinkId> = claimed.iter().collect();
    same("K-1: distinct keys", distinct.len(), claimed.len())?;
    same("every seed is claimed", claimed.len(), SEEDS)?;
    let counts = store.counts().await?;
    same("seeds left", counts.seeded, 0)?;
    same("live", counts.live, SEEDS as u64)?;
    same("expired", store.ended(NOW, 1).await?, vec![])
}

pub async fn a_seed_of_a_released_key_is_claimed_with_the_next_generation(
    store: Seeded,
) -> Result<()> {
    for generation in 1..4 {
        same("seeded", store.seed(&[id("a")]).await?, 1)?;
        let claimed = store.claim(vec![link("wish")]).await?;
        let revision = Revision {
            generation,
            version: 1,
        };
        same("claimed", claimed.len(), 1)?;
        same("its revision", claimed[0].revision, revision)?;
        same(
            "as stored",
            stored(&store, &id("a")).await?,
            claimed[0].clone(),
        )?;
        changed(&store, store.delete(&id("a"), NOW).await?).await?;
        let got = store.release(NOW, 9).await?;
        same("released", got, vec![released("a", generation)])?;
    }
    Ok(())
}
