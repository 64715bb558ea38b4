//! Clauses of [`LinkShards`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use curt_core::ports::{
    ChangeReply, Inserted, LinkChange, LinkCounts, LinkShards, ListQuery, RequestToken,
    SeededDatabase, SpendReply,
};
use curt_core::{
    Epoch, ErrorKind, KeyOrigin, Link, LinkId, NodeIndex, PortError, Revision, ShardId, ShardMap,
};

use crate::conformance::{race, refused, same};
use crate::sample::{NOW, SampleWrites, alias, expiring, id, later, link};

type Port = Arc<dyn LinkShards>;
type Links = Arc<dyn SeededDatabase>;

const TOKEN: Option<RequestToken> = Some(RequestToken([7; 16]));

/// The shard of [`OWN`]; [`OTHER`] is in another one.
const OWN: &str = "a";
const OTHER: &str = "b";

fn shard_of(key: &str) -> ShardId {
    ShardId::of(&id(key))
}

/// One of the keys that share the shard of `key`.
fn sibling(key: &str, n: usize) -> String {
    let names = (0..).map(|n| format!("{key}{n}"));
    let mut siblings = names.filter(|name| shard_of(name) == shard_of(key));
    siblings.nth(n).unwrap_or_default()
}

/// The database as writers with the map before and after a move of the shard of [`OWN`] see it.
fn before_and_after(node: &Port) -> (Links, Links) {
    let before = ShardMap::default();
    let after = before.moved(shard_of(OWN), NodeIndex(1));
    let [before, after] = [before, after].map(|map| node.routed_by(Arc::new(map)));
    (before, after)
}

async fn seal(node: &Port, epoch: u64) -> Result<()> {
    node.seal(shard_of(OWN), Epoch(epoch)).await?;
    Ok(())
}

fn limited(key: &str) -> Link {
    Link {
        max_clicks: Some(5),
        ..link(key)
    }
}

/// Everything that is stored of these keys.
async fn all_of(links: &Links, keys: &[&str]) -> Result<(Vec<Option<Link>>, LinkCounts, Vec<u64>)> {
    let ids: Vec<LinkId> = keys.iter().map(|key| id(key)).collect();
    let mut spent = Vec::new();
    for id in &ids {
        spent.push(links.clicks_spent(id).await?);
    }
    Ok((links.get_many(&ids).await?, links.counts().await?, spent))
}

pub async fn a_write_at_the_current_epoch_succeeds(node: Port) -> Result<()> {
    let (before, after) = before_and_after(&node);
    before.insert(vec![limited(OWN)]).await?;
    seal(&node, 1).await?;
    let spent = after.spend_click(&id(OWN), Revision::FIRST).await?;
    same("a click", spent, SpendReply::Granted)?;
    let edited = after.update_at(limited(OWN), Revision::FIRST).await?;
    ensure!(matches!(edited, ChangeReply::Changed(_)), "{edited:?}");
    let deleted = after.delete(&id(OWN), NOW).await?;
    ensure!(matches!(deleted, ChangeReply::Changed(_)), "{deleted:?}");
    let other = before.insert(vec![link(OTHER)]).await?;
    same("another shard, by the old map", other, vec![true])
}

pub async fn a_write_at_an_older_epoch_changes_nothing_l4(node: Port) -> Result<()> {
    let (before, _) = before_and_after(&node);
    before.insert(vec![limited(OWN)]).await?;
    before.spend_click(&id(OWN), Revision::FIRST).await?;
    let as_it_was = all_of(&before, &[OWN]).await?;
    seal(&node, 1).await?;
    let stale = ErrorKind::StaleEpoch;
    let again = before.insert_if_absent(vec![limited(OWN)], None).await;
    refused("an insert", again, stale)?;
    let edit = Link {
        title: Some("late".into()),
        ..limited(OWN)
    };
    let edited = before.update_at(edit, Revision::FIRST).await;
    refused("an update", edited, stale)?;
    let deleted = before.delete_at(&id(OWN), Revision::FIRST, NOW).await;
    refused("a deletion", deleted, stale)?;
    let spent = before.spend_click(&id(OWN), Revision::FIRST).await;
    refused("a click", spent, stale)?;
    same(
        "reads by the old map",
        all_of(&before, &[OWN]).await?,
        as_it_was,
    )?;
    let listed = before
        .list(&ListQuery {
            limit: 9,
            ..ListQuery::default()
        })
        .await?;
    same("a list", listed.links.len(), 1)
}

pub async fn a_request_is_refused_as_a_whole_l4(node: Port) -> Result<()> {
    let (before, after) = before_and_after(&node);
    seal(&node, 1).await?;
    let bulk = before
        .insert_if_absent(vec![link(OTHER), link(OWN)], None)
        .await;
    refused("a bulk", bulk, ErrorKind::StaleEpoch)?;
    same("the healthy one", before.get(&id(OTHER)).await?, None)?;
    // Engines may put the requests of many callers into one statement.
    let outcomes = race(32, |n| {
        let before = Arc::clone(&before);
        let key = if n % 4 == 0 {
            OWN.to_owned()
        } else {
            format!("n{n}")
        };
        async move { Ok((n, before.insert_if_absent(vec![link(&key)], None).await)) }
    });
    for (n, outcome) in outcomes.await? {
        match n % 4 {
            0 => refused("one of many callers", outcome, ErrorKind::StaleEpoch)?,
            _ => ensure!(outcome?[0].is_created(), "another of many callers"),
        }
    }
    let inserted = after.insert(vec![link(OTHER), link(OWN)]).await?;
    same("by the new map", inserted, vec![true, true])
}

/// The former owner has given its links away: that they are not there says nothing.
pub async fn an_absent_link_of_a_sealed_shard_is_refused_l4(node: Port) -> Result<()> {
    let (before, after) = before_and_after(&node);
    seal(&node, 1).await?;
    let stale = ErrorKind::StaleEpoch;
    let edited = before.update_at(link(OWN), Revision::FIRST).await;
    refused("an update", edited, stale)?;
    let deleted = before.delete_at(&id(OWN), Revision::FIRST, NOW).await;
    refused("a deletion", deleted, stale)?;
    let spent = before.spend_click(&id(OWN), Revision::FIRST).await;
    refused("a click", spent, stale)?;
    let deleted = after.delete_at(&id(OWN), Revision::FIRST, NOW).await?;
    same("by the new map", deleted, ChangeReply::Absent)
}

pub async fn work_in_the_background_passes_over_a_sealed_shard_l4(node: Port) -> Result<()> {
    let (before, after) = before_and_after(&node);
    // An expired link, a tombstone and a seed in the shard that moves, and the same in another.
    let [expired, deleted] = [0, 1].map(|n| [OWN, OTHER].map(|key| sibling(key, n)));
    let links = expired.iter().map(|key| expiring(key, NOW));
    let links = links.chain(deleted.iter().map(|key| link(key)));
    before.insert(links.collect()).await?;
    for key in &deleted {
        before.delete(&id(key), NOW).await?;
    }
    before.seed(&[id(OWN), id(OTHER)]).await?;
    let batch: Vec<_> = expired
        .iter()
        .map(|key| (id(key), Revision::FIRST))
        .collect();
    seal(&node, 1).await?;

    let keys = |changes: Vec<LinkChange>| -> Vec<LinkId> {
        changes.into_iter().map(|change| change.id).collect()
    };
    let purged = keys(before.purge(&batch, later(1), later(1)).await?);
    same("purged by the old map", purged, vec![id(&expired[1])])?;
    let purged = keys(after.purge(&batch, later(1), later(1)).await?);
    same("purged by the new map", purged, vec![id(&expired[0])])?;

    let released = keys(before.release(NOW, 1).await?);
    same("released by the old map", released, vec![id(&deleted[1])])?;
    let released = keys(after.release(NOW, 1).await?);
    same("released by the new map", released, vec![id(&deleted[0])])?;

    let claimed = before.claim(vec![link("x"), link("y")]).await?;
    let claimed: Vec<LinkId> = claimed.into_iter().map(|link| link.id).collect();
    same("claimed by the old map", claimed, vec![id(OTHER)])?;
    same(
        "seeded by the old map",
        before.seed(&[id(&deleted[0])]).await?,
        0,
    )?;
    same(
        "seeded by the new map",
        after.seed(&[id(&deleted[0])]).await?,
        1,
    )?;
    same(
        "claimed by the new map",
        after.claim(vec![link("x"), link("y")]).await?.len(),
        2,
    )
}

pub async fn a_seal_never_goes_back_l4(node: Port) -> Result<()> {
    let (before, after) = before_and_after(&node);
    seal(&node, 1).await?;
    seal(&node, 1).await?;
    seal(&node, 0).await?;
    let late = before.insert_if_absent(vec![link(OWN)], None).await;
    refused("by the old map", late, ErrorKind::StaleEpoch)?;
    seal(&node, 2).await?;
    let late = after.insert_if_absent(vec![link(OWN)], None).await;
    refused("by the map in between", late, ErrorKind::StaleEpoch)
}

/// Writers that were let in before the seal are done when it returns.
pub async fn no_write_lands_after_a_seal_l4(node: Port) -> Result<()> {
    const WRITERS: usize = 8;
    for epoch in 1..=10 {
        let map = (1..epoch).fold(ShardMap::default(), |map, _| {
            map.moved(shard_of(OWN), NodeIndex(0))
        });
        let links = node.routed_by(Arc::new(map));
        let key = sibling(OWN, epoch as usize);
        links.insert(vec![link(&key)]).await?;
        let is_sealed = Arc::new(AtomicBool::new(false));
        let writers = race(WRITERS + 1, |n| {
            let (links, node, is_sealed) = (
                Arc::clone(&links),
                Arc::clone(&node),
                Arc::clone(&is_sealed),
            );
            let key = key.clone();
            async move {
                if n == WRITERS {
                    node.seal(shard_of(OWN), Epoch(epoch)).await?;
                    let at_the_seal = links.get(&id(&key)).await?;
                    is_sealed.store(true, Ordering::SeqCst);
                    return Ok(at_the_seal);
                }
                let mut seen = Revision::FIRST;
                loop {
                    // An engine that answers without waiting would leave no thread to the one that seals.
                    tokio::task::yield_now().await;
                    let begun_late = is_sealed.load(Ordering::SeqCst);
                    match links.update_at(link(&key), seen).await {
                        Ok(ChangeReply::Changed(change)) => seen = change.revision,
                        Ok(ChangeReply::Stale(now)) => seen = now,
                        Ok(ChangeReply::Absent) => return Err(bug("the link is gone")),
                        Err(error) if error.kind == ErrorKind::StaleEpoch => return Ok(None),
                        Err(error) => return Err(error),
                    }
                    if begun_late {
                        return Err(bug("L-4: a write after the seal was not refused"));
                    }
                }
            }
        });
        let mut at_the_seal = writers.await?;
        let at_the_seal = at_the_seal.pop().flatten();
        same(
            "L-4: the link after the seal",
            links.get(&id(&key)).await?,
            at_the_seal,
        )?;
    }
    Ok(())
}

fn bug(detail: &str) -> PortError {
    PortError::new(ErrorKind::Bug, "test", "write", detail)
}

pub async fn a_retry_finds_its_link_at_the_next_epoch(node: Port) -> Result<()> {
    let (before, after) = before_and_after(&node);
    let insert = |links: &Links| {
        let links = Arc::clone(links);
        async move { links.insert_if_absent(vec![link(OWN)], TOKEN).await }
    };
    ensure!(insert(&before).await?[0].is_created(), "the first call");
    seal(&node, 1).await?;
    refused(
        "by the old map",
        insert(&before).await,
        ErrorKind::StaleEpoch,
    )?;
    let found = insert(&after).await?;
    ensure!(
        matches!(found[..], [Inserted::CreatedBefore(_)]),
        "{found:?}"
    );
    Ok(())
}

pub async fn counts_of_shards_add_up_k2(node: Port) -> Result<()> {
    let links = node.routed_by(Arc::default());
    let key = |n: usize| format!("key{n}");
    let random = |key: &str| Link {
        origin: KeyOrigin::Random,
        ..link(key)
    };
    let made = (0..60).map(|n| match n % 3 {
        0 => link(&key(n)),
        1 => alias(&key(n)),
        _ => random(&key(n)),
    });
    links.insert(made.collect()).await?;
    for n in 0..30 {
        links.delete(&id(&key(n)), later(n as u64)).await?;
    }
    links.release(later(14), 100).await?;
    // Some of the released keys are used again.
    links
        .insert((0..6).map(|n| link(&key(n))).collect())
        .await?;
    let seeds: Vec<LinkId> = (60..80).map(|n| id(&key(n))).collect();
    links.seed(&seeds).await?;
    let claimed = Link {
        origin: KeyOrigin::Claim,
        ..link("x")
    };
    links.claim(vec![claimed; 5]).await?;

    let mut sum = LinkCounts::default();
    let mut created = KeyOrigin::ALL.map(|origin| (origin, 0));
    for shard in ShardId::all() {
        let counts = node.shard_counts(shard).await?;
        // Every third key came from the ledger, and the first fifteen were released.
        let released = (0..15).step_by(3).filter(|n| shard_of(&key(*n)) == shard);
        let released = released.count() as u64;
        same("released of a shard", counts.released_from_ledger, released)?;
        for (origin, count) in &mut created {
            *count += counts.created_from(*origin);
        }
        sum.live += counts.live;
        sum.deleted += counts.deleted;
        sum.deleted_from_ledger += counts.deleted_from_ledger;
        sum.released_from_ledger += counts.released_from_ledger;
        sum.seeded += counts.seeded;
    }
    sum.created = created
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    ensure!(sum.released_from_ledger > 0 && sum.seeded == 15, "{sum:?}");
    let counts = links.counts().await?;
    let created = KeyOrigin::ALL.map(|origin| (origin, counts.created_from(origin)));
    let created = created
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    same("K-2: all shards", sum, LinkCounts { created, ..counts })
}

pub async fn an_identity_is_made_once(node: Port) -> Result<()> {
    let identities = race(16, |_| {
        let node = Arc::clone(&node);
        async move { node.identity().await }
    });
    let identities = identities.await?;
    ensure!(identities[0].len() >= 8, "{:?}", identities[0]);
    ensure!(
        !identities[0].contains('\n'),
        "an identity of several lines"
    );
    let is_one = identities.iter().all(|identity| *identity == identities[0]);
    ensure!(is_one, "several identities: {identities:?}");
    same("asked again", node.identity().await?, identities[0].clone())
}
