use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{ChangeReply, Inserted, LinkChange, LinkCounts, RequestToken, SpendReply};
use curt_core::{KeyOrigin, Link, LinkId, LinkState, RedirectStatus, Revision, UnixMillis};

use super::{Port, add, changed, current_counts, expect_counts, stored};
use crate::conformance::{race, same};
use crate::sample::{NOW, SampleWrites, alias, expiring, full_link, id, later, link, released};

fn sorted_ids(changes: Vec<LinkChange>) -> Vec<LinkId> {
    let mut ids: Vec<LinkId> = changes.into_iter().map(|change| change.id).collect();
    ids.sort();
    ids
}

fn names(batch: &[(LinkId, Revision)]) -> Vec<String> {
    batch.iter().map(|(id, _)| id.key.to_string()).collect()
}

pub async fn expired_links_come_oldest_first(store: Port) -> Result<()> {
    let links = [
        expiring("later", later(30)),
        expiring("last", later(20)),
        expiring("first", UnixMillis(-1)),
        expiring("middle", later(10)),
        link("never"),
    ];
    add(&store, links).await?;
    let expired = store.ended(later(20), 10).await?;
    same(
        "at or before",
        names(&expired),
        vec!["first".into(), "middle".into(), "last".into()],
    )?;
    let revisions = expired.iter().all(|(_, seen)| *seen == Revision::FIRST);
    ensure!(revisions, "with their revisions");
    let two = store.ended(later(20), 2).await?;
    same(
        "at most the limit",
        names(&two),
        vec!["first".into(), "middle".into()],
    )?;
    same(
        "none that early",
        store.ended(UnixMillis(-2), 9).await?,
        vec![],
    )?;
    same("all", store.ended(UnixMillis::MAX, 9).await?.len(), 4)
}

pub async fn only_active_links_expire(store: Port) -> Result<()> {
    let disabled = Link {
        state: LinkState::Disabled,
        ..expiring("disabled", NOW)
    };
    add(
        &store,
        [disabled, expiring("deleted", NOW), expiring("moved", NOW)],
    )
    .await?;
    changed(&store, store.delete(&id("deleted"), NOW).await?).await?;
    changed(
        &store,
        store
            .update_at(expiring("moved", later(9)), Revision::FIRST)
            .await?,
    )
    .await?;
    same("expired", store.ended(later(8), 10).await?, vec![])?;
    same(
        "moved on",
        names(&store.ended(later(9), 10).await?),
        vec!["moved".into()],
    )
}

/// Whatever their expiry says, and until they are restored.
pub async fn deleted_links_end_by_their_deletion(store: Port) -> Result<()> {
    let deleted = |key, state, at, expires_at| Link {
        state,
        updated_at: at,
        expires_at,
        ..full_link(key)
    };
    use LinkState::{Deleted, DeletedDisabled};
    let links = [
        deleted("third", Deleted, later(30), Some(NOW)),
        deleted("first", DeletedDisabled, later(10), None),
        deleted("restored", Deleted, later(10), Some(later(99))),
        expiring("second", later(20)),
    ];
    add(&store, links).await?;
    let restored = stored(&store, &id("restored")).await?;
    let back = Link {
        state: LinkState::Active,
        ..restored.clone()
    };
    changed(&store, store.update_at(back, restored.revision).await?).await?;

    let due = async |at| Ok::<_, anyhow::Error>(names(&store.ended(at, 9).await?));
    same("none yet", due(later(9)).await?, vec![])?;
    let want: Vec<String> = ["first", "second", "third"].map(Into::into).into();
    same("oldest first", due(later(30)).await?, want.clone())?;
    let two = names(&store.ended(later(30), 2).await?);
    same("at most the limit", two, want[..2].to_vec())?;

    let mut batch = store.ended(later(30), 9).await?;
    batch.push((id("restored"), restored.revision));
    batch.push((id("restored"), restored.revision.edited()));
    let purged = store.purge(&batch, later(20), later(40)).await?;
    same(
        "only what ended by then",
        sorted_ids(purged),
        vec![id("first"), id("second")],
    )?;
    let tombstone = stored(&store, &id("first")).await?;
    same("a tombstone", tombstone.state, LinkState::Tombstone)?;
    same("of then", tombstone.updated_at, later(40))?;
    same("without a title", tombstone.title, None)?;
    let third = stored(&store, &id("third")).await?;
    same("kept", third.title, full_link("third").title)?;
    same("totals", current_counts(&store).await?.deleted, 3)?;
    let released = store.release(later(39), 9).await?;
    same("the quarantine begins with the purge", released, vec![])
}

pub async fn a_purge_leaves_tombstones_l3(store: Port) -> Result<()> {
    let full = Link {
        state: LinkState::Active,
        expires_at: Some(NOW),
        ..full_link("full")
    };
    add(&store, [full.clone(), expiring("b", NOW)]).await?;
    let batch = store.ended(later(1), 10).await?;
    let purged = store.purge(&batch, later(1), later(1)).await?;
    same("purged", sorted_ids(purged), vec![id("b"), id("full")])?;
    let want = Link {
        state: LinkState::Tombstone,
        revision: full.revision.edited(),
        updated_at: later(1),
        title: None,
        tags: Vec::new(),
        password_hash: None,
        ..full
    };
    same("a tombstone", stored(&store, &id("full")).await?, want)?;
    same(
        "called twice",
        store.purge(&batch, later(1), later(1)).await?,
        vec![],
    )?;
    same("nothing left", store.ended(later(1), 10).await?, vec![])
}

pub async fn a_purge_checks_again(store: Port) -> Result<()> {
    let keys = ["edited", "prolonged", "disabled", "deleted", "ripe"];
    add(&store, keys.map(|key| expiring(key, NOW))).await?;
    add(&store, [expiring("unripe", later(2)), link("never")]).await?;
    let mut batch = store.ended(NOW, 10).await?;
    same("expired", batch.len(), keys.len())?;
    batch.push((id("unripe"), Revision::FIRST));
    batch.push((id("never"), Revision::FIRST));
    batch.push((id("absent"), Revision::FIRST));

    let update = |link| store.update_at(link, Revision::FIRST);
    changed(&store, update(expiring("edited", NOW)).await?).await?;
    changed(&store, update(expiring("prolonged", later(9))).await?).await?;
    let disabled = Link {
        state: LinkState::Disabled,
        ..expiring("disabled", NOW)
    };
    changed(&store, update(disabled).await?).await?;
    changed(&store, store.delete(&id("deleted"), NOW).await?).await?;
    let purged = store.purge(&batch, later(1), later(1)).await?;
    same("purged", sorted_ids(purged), vec![id("ripe")])?;
    for key in ["edited", "prolonged", "unripe", "never"] {
        same(
            key,
            stored(&store, &id(key)).await?.state,
            LinkState::Active,
        )?;
    }
    let at_now = Revision::FIRST.edited();
    let again = store
        .purge(&[(id("disabled"), at_now)], later(1), later(1))
        .await?;
    same("a disabled one at its revision", again, vec![])?;
    let again = store
        .purge(&[(id("edited"), at_now)], later(1), later(1))
        .await?;
    same("an edited one", sorted_ids(again), vec![id("edited")])
}

pub async fn racing_purges_change_each_link_once(store: Port) -> Result<()> {
    const LINKS: usize = 200;
    add(&store, (0..LINKS).map(|n| expiring(&format!("k{n}"), NOW))).await?;
    let batch = store.ended(NOW, LINKS).await?;
    let purged = race(8, |_| {
        let store = Arc::clone(&store);
        let batch = batch.clone();
        async move { store.purge(&batch, NOW, NOW).await }
    })
    .await?;
    let mut ids = sorted_ids(purged.into_iter().flatten().collect());
    same("changes", ids.len(), LINKS)?;
    ids.dedup();
    same("distinct links", ids.len(), LINKS)?;
    same(
        "tombstones",
        current_counts(&store).await?.deleted,
        LINKS as u64,
    )
}

/// Inserts links and deletes each at its own instant.
async fn add_tombstones(store: &Port, links: Vec<(Link, UnixMillis)>) -> Result<()> {
    for (link, at) in links {
        let id = link.id.clone();
        add(store, [link]).await?;
        changed(store, store.delete(&id, at).await?).await?;
    }
    Ok(())
}

pub async fn a_release_waits_for_the_quarantine_l3(store: Port) -> Result<()> {
    let tombstones = vec![
        (link("old"), NOW),
        (link("edge"), later(5)),
        (link("young"), later(6)),
    ];
    add_tombstones(&store, tombstones).await?;
    add(&store, [expiring("purged", later(1)), link("live")]).await?;
    store
        .purge(&[(id("purged"), Revision::FIRST)], later(2), later(2))
        .await?;
    let mut got = store.release(later(5), 10).await?;
    got.sort();
    same(
        "released",
        got,
        ["edge", "old", "purged"].map(|key| released(key, 1)).into(),
    )?;
    same("the row is gone", store.get(&id("old")).await?, None)?;
    stored(&store, &id("young")).await?;
    stored(&store, &id("live")).await?;
    same("called twice", store.release(later(5), 10).await?, vec![])?;
    let again = store.insert(vec![link("old")]).await?;
    same("free again", again, vec![true])?;
    let revision = stored(&store, &id("old")).await?.revision;
    same("of the next generation", revision, Revision::FIRST.reborn())
}

/// Every key that may be used again, whatever it came from, and however its next link comes to be.
pub async fn the_next_link_of_a_released_key_has_the_next_generation(store: Port) -> Result<()> {
    let of = |origin: KeyOrigin| Link {
        origin,
        max_clicks: Some(3),
        ..link(origin.name())
    };
    let origins = KeyOrigin::ALL.into_iter().skip(1);
    for generation in 1..4 {
        let revision = Revision {
            generation,
            version: 1,
        };
        for (n, origin) in origins.clone().enumerate() {
            let id = id(origin.name());
            let token = (n % 2 == 0).then_some(RequestToken([generation as u8; 16]));
            let inserted = store.insert_if_absent(vec![of(origin)], token).await?;
            let change = LinkChange {
                id: id.clone(),
                revision,
            };
            same("outcome", inserted, vec![Inserted::Created(change)])?;
            same("revision", stored(&store, &id).await?.revision, revision)?;
            same("clicks taken", store.clicks_spent(&id).await?, 0)?;
            same(
                "the new link has clicks of its own",
                store.spend_click(&id, revision).await?,
                SpendReply::Granted,
            )?;
            if generation > 1 {
                let former = Revision {
                    generation: generation - 1,
                    version: 1,
                };
                let stale = ChangeReply::Stale(revision);
                let edit = store.update_at(of(origin), former).await?;
                same("an edit of the former link", edit, stale.clone())?;
                let delete = store.delete_at(&id, former, NOW).await?;
                same("a deletion of the former link", delete, stale)?;
                let spend = store.spend_click(&id, former).await?;
                same("a click of the former link", spend, SpendReply::Stale)?;
            }
            changed(&store, store.delete(&id, NOW).await?).await?;
        }
        let mut got = store.release(NOW, 100).await?;
        got.sort();
        let mut want: Vec<LinkChange> = origins
            .clone()
            .map(|origin| released(origin.name(), generation))
            .collect();
        want.sort();
        same("released", got, want)?;
    }
    Ok(())
}

pub async fn a_release_keeps_what_must_not_return_l3(store: Port) -> Result<()> {
    let with = |key, status| Link {
        status,
        ..link(key)
    };
    let tombstones = vec![
        (alias("alias"), NOW),
        (with("p301", RedirectStatus::MovedPermanently), NOW),
        (with("p308", RedirectStatus::PermanentRedirect), NOW),
        (with("t302", RedirectStatus::Found), NOW),
        (with("t307", RedirectStatus::TemporaryRedirect), NOW),
    ];
    add_tombstones(&store, tombstones).await?;
    add(
        &store,
        [
            with("was301", RedirectStatus::MovedPermanently),
            link("to308"),
        ],
    )
    .await?;
    let update = |link| store.update_at(link, Revision::FIRST);
    changed(&store, update(with("was301", RedirectStatus::Found)).await?).await?;
    changed(
        &store,
        update(with("to308", RedirectStatus::PermanentRedirect)).await?,
    )
    .await?;
    let back = store.update_at(link("to308"), Revision::FIRST.edited());
    changed(&store, back.await?).await?;
    for key in ["was301", "to308"] {
        changed(&store, store.delete(&id(key), NOW).await?).await?;
    }
    let mut got = store.release(later(1), 100).await?;
    got.sort();
    same(
        "released",
        got,
        ["t302", "t307"].map(|key| released(key, 1)).into(),
    )?;
    for key in ["alias", "p301", "p308", "was301", "to308"] {
        same(
            key,
            stored(&store, &id(key)).await?.state,
            LinkState::Tombstone,
        )?;
    }
    let counts = LinkCounts {
        created: vec![(KeyOrigin::Alias, 1), (KeyOrigin::Ledger, 6)],
        deleted: 5,
        deleted_from_ledger: 4,
        released_from_ledger: 2,
        ..LinkCounts::default()
    };
    expect_counts(&store, "a release", &counts).await
}

pub async fn a_release_stops_at_its_limit(store: Port) -> Result<()> {
    let tombstones = (0..10).map(|n| (link(&format!("k{n}")), NOW)).collect();
    add_tombstones(&store, vec![(alias("a"), NOW)]).await?;
    add_tombstones(&store, tombstones).await?;
    for left in [6, 2, 0] {
        let released = store.release(NOW, 4).await?;
        ensure!(released.len() <= 4, "{} over a limit of 4", released.len());
        let counts = current_counts(&store).await?;
        same("tombstones left", counts.deleted_from_ledger, left)?;
    }
    Ok(())
}

pub async fn racing_releases_are_disjoint(store: Port) -> Result<()> {
    const LINKS: usize = 100;
    add(&store, (0..LINKS).map(|n| expiring(&format!("k{n}"), NOW))).await?;
    let batch = store.ended(NOW, LINKS).await?;
    store.purge(&batch, NOW, NOW).await?;
    let released = race(8, |_| {
        let store = Arc::clone(&store);
        async move { store.release(NOW, 30).await }
    })
    .await?;
    let mut ids: Vec<LinkChange> = released.into_iter().flatten().collect();
    same("released", ids.len(), LINKS)?;
    ids.sort();
    ids.dedup();
    same("distinct keys", ids.len(), LINKS)?;
    same("tombstones left", current_counts(&store).await?.deleted, 0)
}
