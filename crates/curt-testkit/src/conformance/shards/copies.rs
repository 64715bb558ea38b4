//! Clauses of the moves of [`LinkShards`].

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use curt_core::ports::{
    BeginReply, CreationOutcome, LinkCounts, LinkShards, ListQuery, RequestToken, SeededDatabase,
    ShardItem, SpendReply,
};
use curt_core::{Epoch, ErrorKind, Link, LinkId, NodeIndex, Revision, ShardId, ShardMap};

use crate::conformance::{refused, same};
use crate::sample::{NOW, SampleWrites, full_link, id, idempotent, later, link, plan};

pub(super) type Port = Arc<dyn LinkShards>;
type Links = Arc<dyn SeededDatabase>;

pub(super) const STALE: ErrorKind = ErrorKind::StaleEpoch;
pub(super) const FENCE: u64 = 7;

pub(super) fn shard() -> ShardId {
    ShardId::of(&id("a"))
}

/// Keys of the shard that moves, without end.
pub(super) fn own_keys() -> impl Iterator<Item = String> {
    let names = (0..).map(|n| format!("a{n}"));
    names.filter(|name| ShardId::of(&id(name)) == shard())
}

/// A name of a request of the shard, or of another one.
pub(super) fn request_name(is_own: bool) -> String {
    let mut names = (0..).map(|n| format!("request{n}"));
    let owner = idempotent("x", 1).owner;
    let name = names.find(|name| (ShardId::of_request(owner, name) == shard()) == is_own);
    name.unwrap_or_default()
}

/// The database through a map in which the shard has moved so often.
pub(super) fn at_epoch(node: &Port, epoch: u64) -> Links {
    let map = ShardMap::of_one_node();
    let map = (0..epoch).fold(map, |map, _| map.moved(shard(), NodeIndex(1)));
    node.routed_by(Arc::new(map))
}

/// Links of the shard in every state, one of another shard, and a finished request. Returns their ids.
async fn fill(links: &Links) -> Result<Vec<LinkId>> {
    let keys: Vec<String> = own_keys().take(8).collect();
    let limited = Link {
        max_clicks: Some(9),
        ..link(&keys[1])
    };
    let of_shard = |n: usize| Link {
        id: id(&keys[n]),
        ..full_link("any")
    };
    let tagged = [of_shard(0), limited, link(&keys[2]), link(&keys[3])];
    links.insert(tagged.to_vec()).await?;
    links.insert(vec![link("other"), link(&keys[4])]).await?;
    let token = Some(RequestToken([3; 16]));
    links.insert_if_absent(vec![link(&keys[5])], token).await?;
    for _ in 0..4 {
        let spent = links.spend_click(&id(&keys[1]), Revision::FIRST).await?;
        same("a click", spent, SpendReply::Granted)?;
    }
    // A tombstone, a key that was released, and one that was released and given again.
    for key in [&keys[3], &keys[4]] {
        links.delete(&id(key), NOW).await?;
    }
    links.release(NOW, 9).await?;
    links.insert(vec![link(&keys[4])]).await?;
    links.delete(&id(&keys[2]), later(5)).await?;
    links.seed(&[id(&keys[6])]).await?;
    let name = request_name(true);
    let (request, plan) = (idempotent(&name, 1), plan(1, &["x"]));
    same(
        "a request",
        links.begin(&request, &plan).await?,
        BeginReply::New,
    )?;
    let mut ids: Vec<LinkId> = keys.iter().map(|key| id(key)).collect();
    ids.push(id("other"));
    Ok(ids)
}

/// Everything that can be seen of the database.
#[derive(Debug, PartialEq)]
struct Seen {
    links: Vec<Option<Link>>,
    spent: Vec<u64>,
    counts: LinkCounts,
    listed: usize,
    tagged: usize,
}

async fn look(links: &Links, ids: &[LinkId]) -> Result<Seen> {
    let all = ListQuery {
        limit: 100,
        ..ListQuery::default()
    };
    let tags = full_link("any").tags.into_iter().take(1).collect();
    let tagged = ListQuery {
        tags,
        ..all.clone()
    };
    let mut counts = links.counts().await?;
    counts.created.retain(|(_, count)| *count > 0);
    Ok(Seen {
        links: links.get_many(ids).await?,
        spent: links.clicks_spent_many(ids).await?,
        counts,
        listed: links.list(&all).await?.links.len(),
        tagged: links.list(&tagged).await?.links.len(),
    })
}

/// Every item of the shard.
async fn export(node: &Port) -> Result<Vec<ShardItem>> {
    let (mut items, mut position) = (Vec::new(), None);
    for _ in 0..1_000 {
        let part = node.export(shard(), position.as_deref()).await?;
        items.extend(part.items);
        match part.next {
            Some(next) => position = Some(next),
            None => return Ok(items),
        }
    }
    anyhow::bail!("the export does not come to an end")
}

async fn drop_all(node: &Port, fence: u64) -> Result<()> {
    let mut position = None;
    for _ in 0..1_000 {
        position = node.drop_copy(shard(), fence, position.as_deref()).await?;
        if position.is_none() {
            return Ok(());
        }
    }
    anyhow::bail!("the removal does not come to an end")
}

/// The former owner's part after the map has named the next one.
async fn give_up(node: &Port, fence: u64, epoch: u64) -> Result<LinkCounts> {
    node.seal(shard(), Epoch(epoch + 1)).await?;
    node.retire(shard(), fence, Epoch(epoch)).await?;
    let counts = node.shard_counts(shard()).await?;
    node.discount(shard(), fence, &counts).await?;
    Ok(counts)
}

pub async fn a_shard_that_leaves_and_comes_back_is_the_same_k2(node: Port) -> Result<()> {
    let first = at_epoch(&node, 0);
    let ids = fill(&first).await?;
    let before = look(&first, &ids).await?;
    let items = export(&node).await?;
    for item in &items {
        let is_own = match item {
            ShardItem::Link { id, .. } => ShardId::of(id) == shard(),
            ShardItem::Request { owner, key, .. } => ShardId::of_request(*owner, key) == shard(),
            ShardItem::Released { .. } => true,
        };
        ensure!(is_own, "not of the shard: {item:?}");
    }
    let counts = give_up(&node, FENCE, 1).await?;
    // Twice, as a mover does that does not know how far the one before it came.
    node.retire(shard(), FENCE, Epoch(1)).await?;
    node.discount(shard(), FENCE, &counts).await?;
    drop_all(&node, FENCE).await?;
    drop_all(&node, FENCE).await?;
    let second = at_epoch(&node, 1);
    let gone = look(&second, &ids).await?;
    let left = gone.links.iter().flatten().count();
    same("links that are left", left, 1)?;
    same("live links that are left", gone.counts.live, 1)?;
    same("an export of nothing", export(&node).await?, vec![])?;

    // Back again: two moves later.
    let fence = FENCE + 1;
    node.begin_import(shard(), fence, Epoch(2)).await?;
    for part in items.chunks(3) {
        node.import(shard(), fence, part).await?;
        node.import(shard(), fence, part).await?;
    }
    same(
        "live links before the adoption",
        second.counts().await?.live,
        1,
    )?;
    node.adopt(shard(), fence, &counts).await?;
    node.adopt(shard(), fence, &counts).await?;
    let third = at_epoch(&node, 2);
    same("what came back", look(&third, &ids).await?, before)?;
    check_beside(&third, &ids).await
}

/// What only writes show: generations, tokens, seeds and requests.
async fn check_beside(links: &Links, ids: &[LinkId]) -> Result<()> {
    let token = Some(RequestToken([3; 16]));
    let again = links
        .insert_if_absent(
            vec![Link {
                id: ids[5].clone(),
                ..link("x")
            }],
            token,
        )
        .await?;
    ensure!(
        matches!(again[0], curt_core::ports::Inserted::CreatedBefore(_)),
        "a retry does not find its link: {again:?}"
    );
    let reborn = links
        .get(&ids[4])
        .await?
        .context("the link that was made again")?;
    same("its generation", reborn.revision.generation, 2)?;
    links
        .insert(vec![Link {
            id: ids[3].clone(),
            ..link("x")
        }])
        .await?;
    let reborn = links
        .get(&ids[3])
        .await?
        .context("a link under a released key")?;
    same("L-3: its generation", reborn.revision.generation, 2)?;
    let claimed = links.claim(vec![link("x")]).await?;
    let claimed: Vec<LinkId> = claimed.into_iter().map(|link| link.id).collect();
    same("the seed", claimed, vec![ids[6].clone()])?;
    let (request, plan) = (idempotent(&request_name(true), 1), plan(1, &["x"]));
    same(
        "the plan of the request",
        links.begin(&request, &plan).await?,
        BeginReply::New,
    )?;
    let outcome = CreationOutcome {
        at: plan.at,
        ids: vec![Some(id("x"))],
    };
    let finished = links.finish(&request, plan.token, outcome.clone()).await?;
    same("its outcome", finished, outcome.clone())?;
    let replayed = links.begin(&request, &plan).await?;
    same("its replay", replayed, BeginReply::Replayed(outcome))
}

pub async fn changes_are_remembered_until_they_are_forgotten(node: Port) -> Result<()> {
    let links = at_epoch(&node, 0);
    let keys: Vec<String> = own_keys().take(4).collect();
    links
        .insert(vec![Link {
            max_clicks: Some(5),
            ..link(&keys[0])
        }])
        .await?;
    node.track_changes(shard(), FENCE).await?;
    node.track_changes(shard(), FENCE).await?;
    let none = node.changes(shard()).await?;
    ensure!(none.items.is_empty() && none.is_end, "{none:?}");
    links.insert(vec![link(&keys[1]), link("other")]).await?;
    links.spend_click(&id(&keys[0]), Revision::FIRST).await?;
    links.insert(vec![link(&keys[2])]).await?;
    links.delete(&id(&keys[2]), NOW).await?;
    links.release(NOW, 9).await?;
    for is_own in [true, false] {
        let request = idempotent(&request_name(is_own), 1);
        links.begin(&request, &plan(1, &["x"])).await?;
    }
    let changes = node.changes(shard()).await?;
    ensure!(changes.is_end, "there are few changes: {changes:?}");
    let mut ids = Vec::new();
    let mut requests = 0;
    for item in &changes.items {
        match item {
            ShardItem::Link {
                id,
                stored,
                former_generation,
            } => {
                let spent = stored.as_ref().map(|stored| stored.clicks_spent);
                let want = match () {
                    () if *id == self::id(&keys[0]) => (Some(1), None),
                    () if *id == self::id(&keys[2]) => (None, Some(1)),
                    () => (Some(0), None),
                };
                same(&format!("{id}"), (spent, *former_generation), want)?;
                ids.push(id.clone());
            }
            ShardItem::Request { record, .. } => requests += usize::from(record.is_some()),
            ShardItem::Released { count, .. } => same("released", *count, 1)?,
        }
    }
    ids.sort();
    ids.dedup();
    let mut want: Vec<LinkId> = keys[..3].iter().map(|key| id(key)).collect();
    want.sort();
    same("changed links", ids, want)?;
    same("changed requests", requests, 1)?;
    let again = node.changes(shard()).await?;
    same("not forgotten", again.items.len(), changes.items.len())?;
    node.forget_changes(&changes).await?;
    node.forget_changes(&changes).await?;
    let none = node.changes(shard()).await?;
    ensure!(none.numbers.is_empty(), "{none:?}");
    node.stop_tracking(shard(), FENCE).await?;
    node.stop_tracking(shard(), FENCE).await?;
    links.insert(vec![link(&keys[3])]).await?;
    let none = node.changes(shard()).await?;
    ensure!(none.numbers.is_empty(), "{none:?}");
    Ok(())
}

pub async fn a_mover_that_was_replaced_changes_nothing_l4(node: Port) -> Result<()> {
    let links = at_epoch(&node, 0);
    fill(&links).await?;
    let items = export(&node).await?;
    let none = LinkCounts::default();
    refused(
        "an import that did not begin",
        node.import(shard(), FENCE, &items).await,
        STALE,
    )?;
    refused(
        "of what is owned",
        node.drop_copy(shard(), FENCE, None).await,
        STALE,
    )?;
    give_up(&node, FENCE, 1).await?;
    let late = FENCE - 1;
    refused("retire", node.retire(shard(), late, Epoch(1)).await, STALE)?;
    refused("discount", node.discount(shard(), late, &none).await, STALE)?;
    refused("drop", node.drop_copy(shard(), late, None).await, STALE)?;
    let is_left = node.begin_import(shard(), FENCE + 1, Epoch(2)).await;
    refused("an import over what is left", is_left, STALE)?;
    drop_all(&node, FENCE).await?;
    node.begin_import(shard(), FENCE + 1, Epoch(2)).await?;
    refused(
        "begin",
        node.begin_import(shard(), FENCE, Epoch(2)).await,
        STALE,
    )?;
    refused("import", node.import(shard(), FENCE, &items).await, STALE)?;
    refused("adopt", node.adopt(shard(), FENCE, &none).await, STALE)?;
    same("nothing was imported", export(&node).await?, vec![])?;
    node.import(shard(), FENCE + 1, &items).await?;
    node.adopt(shard(), FENCE + 1, &none).await?;
    let late = node.import(shard(), FENCE + 1, &items).await;
    refused("an import into what is owned", late, STALE)?;
    node.track_changes(shard(), FENCE + 1).await?;
    refused("track", node.track_changes(shard(), FENCE).await, STALE)?;
    refused("stop", node.stop_tracking(shard(), FENCE).await, STALE)
}
