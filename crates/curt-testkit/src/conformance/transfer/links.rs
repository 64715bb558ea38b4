//! Clauses of [`LinkTransfer`](curt_core::ports::LinkTransfer).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use curt_core::ports::{
    BeginReply, CreationOutcome, FOLLOWER_MIN, IdempotencyRecord, ImportReport, Inserted,
    LinkCounts, LinkItem, ListOrder, ListQuery, RequestToken, ShardItem, StoredRow,
    Transferred as _,
};
use curt_core::{
    Epoch, ErrorKind, KeyOrigin, Link, LinkId, LinkState, OwnerId, Revision, ShardId, Target,
    UnixMillis,
};

use super::LinkTransferPorts;
use crate::conformance::{refused, same};
use crate::sample::{NOW, SampleWrites, alias, full_link, id, idempotent, later, link, plan};

type Ports = LinkTransferPorts;

const FOLLOWER: u64 = FOLLOWER_MIN + 7;

fn item(row: Option<StoredRow>, of: &LinkId, former_generation: Option<u32>) -> Result<LinkItem> {
    let item = ShardItem::Link {
        id: of.clone(),
        stored: row.map(Box::new),
        former_generation,
    };
    LinkItem::new(item).context("a link tells its shard")
}

fn row(link: Link) -> StoredRow {
    StoredRow {
        was_permanent: link.status.is_permanent(),
        link,
        clicks_spent: 0,
        token: None,
    }
}

fn item_of(link: Link) -> Result<LinkItem> {
    let of = link.id.clone();
    item(Some(row(link)), &of, None)
}

fn at(generation: u32, version: u32) -> Revision {
    Revision {
        generation,
        version,
    }
}

fn request(name: &str, outcome: Option<CreationOutcome>) -> Result<LinkItem> {
    let request = idempotent(name, 1);
    let record = IdempotencyRecord {
        fingerprint: request.fingerprint,
        plan: plan(1, &["x", "y"]),
        outcome,
    };
    let item = ShardItem::Request {
        owner: request.owner,
        key: request.key,
        record: Some(Box::new(record)),
    };
    LinkItem::new(item).context("a request tells its shard")
}

fn released(shard: u16, origin: KeyOrigin, count: u64) -> Result<LinkItem> {
    Ok(LinkItem {
        shard: ShardId::new(shard).context("a shard")?,
        item: ShardItem::Released { origin, count },
    })
}

/// Something of every kind and in every state.
fn samples() -> Result<Vec<LinkItem>> {
    let limited = StoredRow {
        clicks_spent: 4,
        was_permanent: true,
        token: Some(RequestToken([3; 16])),
        ..row(Link {
            max_clicks: Some(9),
            ..link("limited")
        })
    };
    let in_state = |key: &str, state, version| Link {
        state,
        revision: at(1, version),
        updated_at: later(5),
        ..link(key)
    };
    let seed = Link {
        target: Target::from_serialised("about:blank")?,
        owner: OwnerId::ANONYMOUS,
        state: LinkState::Seeded,
        revision: at(2, 0),
        origin: KeyOrigin::Claim,
        created_at: UnixMillis(0),
        updated_at: UnixMillis(0),
        ..link("seed")
    };
    let again = Link {
        revision: at(3, 2),
        updated_at: later(9),
        ..link("again")
    };
    Ok(vec![
        item_of(full_link("full"))?,
        item_of(alias("alias"))?,
        item(Some(limited), &id("limited"), None)?,
        item_of(in_state("grave", LinkState::Tombstone, 2))?,
        item_of(in_state("bin", LinkState::Deleted, 3))?,
        item_of(in_state("offbin", LinkState::DeletedDisabled, 4))?,
        item(Some(row(seed)), &id("seed"), Some(2))?,
        item(Some(row(again)), &id("again"), Some(2))?,
        item(None, &id("gone"), Some(7))?,
        request("begun\nover two lines", None)?,
        request(
            "done",
            Some(CreationOutcome {
                at: plan(1, &["x"]).at,
                ids: vec![Some(id("x")), None],
            }),
        )?,
        released(3, KeyOrigin::Ledger, 5)?,
        released(1023, KeyOrigin::Random, 2)?,
    ])
}

async fn export(ports: &Ports) -> Result<Vec<LinkItem>> {
    let (mut items, mut position) = (Vec::new(), None::<Box<str>>);
    loop {
        let part = ports.transfer.export_all(position.as_deref()).await?;
        items.extend(part.items);
        match part.next {
            Some(next) => position = Some(next),
            None => return Ok(items),
        }
    }
}

fn by_name(items: Vec<LinkItem>) -> Result<BTreeMap<Box<str>, LinkItem>> {
    let count = items.len();
    let named: BTreeMap<_, _> = items.into_iter().map(|item| (item.name(), item)).collect();
    same("items that are there once", named.len(), count)?;
    Ok(named)
}

async fn import(ports: &Ports, items: &[LinkItem]) -> Result<ImportReport> {
    Ok(ports.transfer.import_all(items).await?)
}

fn wrote(written: u64) -> ImportReport {
    ImportReport {
        written,
        ..ImportReport::default()
    }
}

/// The totals, without what is zero.
async fn counts(ports: &Ports) -> Result<LinkCounts> {
    let mut counts = ports.links.counts().await?;
    counts.created.retain(|(_, count)| *count > 0);
    counts.created.sort_by_key(|(origin, _)| *origin as u8);
    Ok(counts)
}

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
    let claimed = links.claim(vec![link("x")]).await?;
    let claimed: Vec<_> = claimed
        .into_iter()
        .map(|link| (link.id, link.revision))
        .collect();
    same("the seed", claimed, vec![(id("seed"), at(3, 1))])?;
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
    links.seed(&seeds).await?;
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
        [LINKS - 250 + 5, 250, names.len() as u64, 250],
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

pub async fn a_sealed_shard_is_refused_l4(ports: Ports) -> Result<()> {
    let sealed = ShardId::of(&id("a"));
    ports.shards.seal(sealed, Epoch(1)).await?;
    let items = [item_of(link("a"))?, item_of(link("b"))?];
    let refusal = ports.transfer.import_all(&items).await;
    refused("an import", refusal, ErrorKind::StaleEpoch)?;
    same("L-4: the link", ports.links.get(&id("a")).await?, None)?;
    same("another", import(&ports, &items[1..]).await?, wrote(1))
}

pub async fn a_position_of_another_engine_is_refused(ports: Ports) -> Result<()> {
    for position in ["", "x", "\u{1f980}", "q1:2/3", "0/abc"] {
        let part = ports.transfer.export_all(Some(position)).await;
        refused(position, part, ErrorKind::Invalid)?;
    }
    Ok(())
}

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

pub async fn one_copy_follows_at_a_time(ports: Ports) -> Result<()> {
    const STALE: ErrorKind = ErrorKind::StaleEpoch;
    let Ports {
        transfer, shards, ..
    } = &ports;
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
