//! Clauses of [`LinkTransfer`](curt_core::ports::LinkTransfer).

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use curt_core::ports::{
    BeginReply, ImportReport, Inserted, LinkCounts, LinkItem, ListOrder, ListQuery, RequestToken,
    ShardItem, StoredRow,
};
use curt_core::{ErrorKind, KeyOrigin, Link, LinkId, LinkState};

use super::LinkTransferPorts as Ports;
use super::samples::{
    at, by_name, counts, export, import, item, item_of, released, row, samples, wrote,
};
use crate::conformance::{refused, same};
use crate::sample::{NOW, SampleWrites, full_link, id, idempotent, later, link, plan};

pub async fn what_is_imported_is_exported_and_counted_k2(ports: Ports) -> Result<()> {
    let samples = samples()?;
    same(
        "the reply",
        import(&ports, &samples).await?,
        wrote(samples.len() as u64),
    )?;
    same(
        "what is there",
        by_name(export(&ports).await?)?,
        by_name(samples)?,
    )?;
    same(
        "K-2: the totals",
        counts(&ports).await?,
        LinkCounts {
            created: vec![
                (KeyOrigin::Alias, 1),
                (KeyOrigin::Ledger, 5 + 5),
                (KeyOrigin::Hash, 1),
                (KeyOrigin::Random, 2),
            ],
            live: 4,
            deleted: 3,
            deleted_from_ledger: 3,
            released_from_ledger: 5,
            seeded: 1,
            ..LinkCounts::default()
        },
    )?;
    check_use(&ports).await
}

/// What was imported is used like anything else.
async fn check_use(ports: &Ports) -> Result<()> {
    let links = &ports.links;
    same("spent", links.clicks_spent(&id("limited")).await?, 4)?;
    same(
        "a link",
        links.get(&id("full")).await?,
        Some(full_link("full")),
    )?;
    let tagged = ListQuery {
        tags: vec!["MANGO tree".into()],
        limit: 9,
        ..ListQuery::default()
    };
    let listed = links.list(&tagged).await?.links;
    same("by tag", listed, vec![full_link("full")])?;
    let token = Some(RequestToken([3; 16]));
    let again = links.insert_if_absent(vec![link("limited")], token).await?;
    ensure!(
        matches!(again[0], Inserted::CreatedBefore(_)),
        "a retry does not find its link: {again:?}"
    );
    links.insert(vec![link("gone")]).await?;
    let reborn = links.get(&id("gone")).await?.context("the new link")?;
    same("L-3: its generation", reborn.revision.generation, 8)?;
    if let Some(seeded) = &ports.seeded {
        let claimed = seeded.claim(vec![link("x")]).await?.into_iter();
        let claimed: Vec<_> = claimed.map(|link| (link.id, link.revision)).collect();
        same("the seed", claimed, vec![(id("seed"), at(3, 1))])?;
    }
    let done = idempotent("done", 1);
    let reply = links.begin(&done, &plan(2, &["z"])).await?;
    ensure!(matches!(reply, BeginReply::Replayed(_)), "{reply:?}");
    let restored = Link {
        state: LinkState::Active,
        ..link("bin")
    };
    links.update_at(restored, at(1, 3)).await?;
    same("restored", counts(ports).await?.deleted, 2)
}

pub async fn an_import_that_is_repeated_changes_nothing(ports: Ports) -> Result<()> {
    let samples = samples()?;
    import(&ports, &samples).await?;
    let (before, totals) = (export(&ports).await?, counts(&ports).await?);
    same("the reply", import(&ports, &samples).await?, wrote(0))?;
    same("what is there", export(&ports).await?, before)?;
    same("the totals", counts(&ports).await?, totals)?;
    same("nothing", import(&ports, &[]).await?, wrote(0))
}

pub async fn everything_is_exported_once_and_in_order(ports: Ports) -> Result<()> {
    const LINKS: u64 = 2_500;
    let links = &ports.links;
    // The order of creation is not that of keys.
    let key = |n: u64| format!("k{}", n * 7_919 % 10_007);
    let created = |n: u64| Link {
        created_at: later(n),
        updated_at: later(n),
        ..link(&key(n))
    };
    for first in (0..LINKS).step_by(500) {
        links
            .insert((first..first + 500).map(created).collect())
            .await?;
    }
    for n in (0..LINKS).step_by(5) {
        links.delete(&id(&key(n)), later(LINKS)).await?;
    }
    let seeds: Vec<LinkId> = (0..5).map(|n| id(&format!("s{n}"))).collect();
    if let Some(seeded) = &ports.seeded {
        seeded.seed(&seeds).await?;
    }
    let seeds = ports.seeded.as_ref().map_or(0, |_| 5);
    links.release(later(LINKS), 250).await?;
    let mut names = Vec::new();
    for n in 0..1_100 {
        let request = idempotent(&format!("r{n}"), 1);
        links.begin(&request, &plan(1, &["x"])).await?;
        names.push(request.key);
    }
    let items = export(&ports).await?;
    let live: Vec<LinkId> = items.iter().filter_map(live_id).collect();
    let want = (0..LINKS).filter(|n| n % 5 != 0).map(|n| id(&key(n)));
    same("live links, oldest first", live, want.collect())?;
    let items = by_name(items)?;
    let kinds = items.values().fold([0; 4], |mut kinds, item| {
        match &item.item {
            ShardItem::Link {
                stored: Some(_), ..
            } => kinds[0] += 1,
            ShardItem::Link { stored: None, .. } => kinds[1] += 1,
            ShardItem::Request { .. } => kinds[2] += 1,
            ShardItem::Released { count, .. } => kinds[3] += count,
        }
        kinds
    });
    same(
        "rows, released keys, requests, and the sum of released keys",
        kinds,
        [LINKS - 250 + seeds, 250, names.len() as u64, 250],
    )
}

fn live_id(item: &LinkItem) -> Option<LinkId> {
    match &item.item {
        ShardItem::Link {
            stored: Some(row), ..
        } if row.link.state.is_live() => Some(row.link.id.clone()),
        _ => None,
    }
}

pub async fn what_is_newer_stays(ports: Ports) -> Result<()> {
    let version = |version, spent| {
        let edited = Link {
            revision: at(1, version),
            target: link(&format!("v{version}")).target,
            max_clicks: Some(9),
            ..link("a")
        };
        let row = StoredRow {
            clicks_spent: spent,
            ..row(edited)
        };
        item(Some(row), &id("a"), None)
    };
    let gone = item(None, &id("a"), Some(1))?;
    let reborn = Link {
        revision: at(2, 1),
        ..link("a")
    };
    let reborn = item(Some(row(reborn)), &id("a"), Some(1))?;
    // What happens to a key in the order of time.
    let life = [version(1, 0)?, version(1, 3)?, version(2, 3)?, gone, reborn];
    for (n, newer) in life.iter().enumerate() {
        same(
            "a newer item",
            import(&ports, std::slice::from_ref(newer)).await?,
            wrote(1),
        )?;
        for older in &life[..n] {
            let report = import(&ports, std::slice::from_ref(older)).await?;
            let want = ImportReport {
                outdated: 1,
                ..wrote(0)
            };
            same(&format!("{older:?} after {newer:?}"), report, want)?;
        }
        same("what is there", export(&ports).await?, vec![newer.clone()])?;
    }
    Ok(())
}

pub async fn a_key_of_another_link_stays_with_it_k1(ports: Ports) -> Result<()> {
    ports.links.insert(vec![link("a"), link("b")]).await?;
    let another = |key: &str, created| Link {
        target: link("elsewhere").target,
        created_at: created,
        updated_at: created,
        revision: at(1, 5),
        ..link(key)
    };
    let items = [
        item_of(another("a", later(1)))?,
        // The same creation, and something else all the same.
        item_of(Link {
            revision: at(1, 1),
            ..another("b", NOW)
        })?,
        item_of(another("c", NOW))?,
    ];
    let report = import(&ports, &items).await?;
    let conflicts: BTreeSet<_> = report.conflicts.iter().cloned().collect();
    let want = ["a", "b"].map(|key| id(key).to_string().into());
    same("K-1: conflicts", conflicts, BTreeSet::from(want))?;
    same("written", (report.written, report.outdated), (1, 0))?;
    for key in ["a", "b"] {
        same(
            "K-1: the link",
            ports.links.get(&id(key)).await?,
            Some(link(key)),
        )?;
    }
    Ok(())
}

pub async fn the_totals_follow_what_is_replaced_k2(ports: Ports) -> Result<()> {
    let state = |state, version| {
        item_of(Link {
            state,
            revision: at(1, version),
            tags: vec!["Tag".into()],
            ..link("a")
        })
    };
    let live_deleted = |counts: &LinkCounts| {
        (
            counts.live,
            counts.deleted,
            counts.created_from(KeyOrigin::Ledger),
        )
    };
    for (item, want) in [
        (state(LinkState::Active, 1)?, (1, 0, 1)),
        (state(LinkState::Deleted, 2)?, (0, 1, 1)),
        (state(LinkState::Active, 3)?, (1, 0, 1)),
        (state(LinkState::Tombstone, 4)?, (0, 1, 1)),
        (item(None, &id("a"), Some(1))?, (0, 0, 0)),
        (released(9, KeyOrigin::Ledger, 1)?, (0, 0, 1)),
        (released(9, KeyOrigin::Ledger, 3)?, (0, 0, 3)),
    ] {
        same(
            "the reply",
            import(&ports, std::slice::from_ref(&item)).await?,
            wrote(1),
        )?;
        same(
            &format!("K-2: {item:?}"),
            live_deleted(&counts(&ports).await?),
            want,
        )?;
    }
    let fewer = import(&ports, &[released(9, KeyOrigin::Ledger, 2)?]).await?;
    same("fewer", fewer.outdated, 1)?;
    same(
        "K-2: released",
        counts(&ports).await?.released_from_ledger,
        3,
    )?;
    let all = ListQuery {
        tags: vec!["tag".into()],
        order: ListOrder::KeyRising,
        limit: 9,
        ..ListQuery::default()
    };
    same("by tag", ports.links.list(&all).await?.links, vec![])
}

pub async fn a_position_of_another_engine_is_refused(ports: Ports) -> Result<()> {
    for position in ["", "x", "\u{1f980}", "q1:2/3", "0/abc"] {
        let part = ports.transfer.export_all(Some(position)).await;
        refused(position, part, ErrorKind::Invalid)?;
    }
    Ok(())
}
