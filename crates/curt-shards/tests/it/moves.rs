//! Shards that move, and movers that die.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{
    BeginReply, ChangeReply, Idempotency, LinkIndex, LinkStore, LinkTotals, ListQuery,
};
use curt_core::{Clock, ErrorKind, NodeIndex, Placement, Revision, ShardId, SystemClock};
use curt_memory::MemoryLinkStore;
use curt_shards::{MoveError, MovePhase, add_nodes, known_nodes, plan_rebalance};
use curt_testkit::sample::{NOW, SampleWrites, id, idempotent, link, plan};
use tokio_util::sync::CancellationToken;

use crate::mortal::Life;
use crate::nodes::{MODULO, named, over};
use crate::world::{World, quiet};

#[tokio::test]
async fn a_shard_moves_with_everything_that_belongs_to_it() {
    let world = World::in_memory().await;
    let keys = world.keys("a", 50);
    let [server, other] = &world.servers;
    let links = keys.iter().map(|key| link(key));
    server.insert(links.collect()).await.unwrap();
    let before = server.counts().await.unwrap();
    for round in 0..3 {
        let to = world.other().await;
        let stop = CancellationToken::new();
        let mover = world.mover();
        let moved = mover.move_shard(world.shard, to, &stop, &quiet).await;
        let report = moved.unwrap();
        assert!(report.copied >= 50, "{report:?}");
        assert_eq!(world.owner().await, to, "round {round}");
        for key in &keys {
            // This server has not heard of the new map.
            assert_eq!(other.get(&id(key)).await.unwrap(), Some(link(key)));
        }
        assert_eq!(server.counts().await.unwrap(), before, "K-2: round {round}");
        let former = &world.nodes[1 - to.0 as usize];
        let left = former.shard_counts(world.shard).await.unwrap();
        assert_eq!(left.live, 0, "left at the former owner");
    }
    assert_eq!(world.mover().unfinished().await.unwrap(), None);
}

#[tokio::test]
async fn two_movers_exclude_each_other() {
    let world = World::in_memory().await;
    let links = world.keys("a", 20);
    let links = links.iter().map(|key| link(key));
    world.servers[0].insert(links.collect()).await.unwrap();
    let life = Life::new(9, true);
    let died = world
        .move_until_death(&life, Duration::from_millis(50))
        .await;
    assert!(died.is_none(), "the mover was to die on its way: {died:?}");
    let (to, stop) = (world.other().await, CancellationToken::new());
    let patient = world.mover_over(
        world.nodes.clone(),
        world.maps.clone(),
        Duration::from_secs(60),
    );
    let busy = patient.move_shard(world.shard, to, &stop, &quiet).await;
    assert!(matches!(busy, Err(MoveError::Busy(_))), "{busy:?}");
    let busy = patient.resume(&stop, &quiet).await;
    assert!(matches!(busy, Err(MoveError::Busy(_))), "{busy:?}");
    let unfinished = world
        .mover()
        .move_shard(world.shard, to, &stop, &quiet)
        .await;
    assert!(
        matches!(unfinished, Err(MoveError::Unfinished(_))),
        "{unfinished:?}"
    );
    world.resume().await.unwrap();
    assert_eq!(world.owner().await, to);
}

/// At every call, before it and after it; another mover goes on with it or takes it back.
#[tokio::test]
async fn a_mover_that_dies_at_any_call_is_followed_by_another_l1() {
    let world = World::in_memory().await;
    let keys = world.keys("a", 30);
    let server = &world.servers[0];
    let links = keys.iter().map(|key| link(key));
    server.insert(links.collect()).await.unwrap();
    let request = (0..).map(|n| idempotent(&format!("request{n}"), 1));
    let is_own = |key: &str| ShardId::of_request(idempotent("x", 1).owner, key) == world.shard;
    let request = request
        .into_iter()
        .find(|request| is_own(&request.key))
        .unwrap();
    server.begin(&request, &plan(1, &["x"])).await.unwrap();
    let mut live = server.counts().await.unwrap().live;
    let mut calls = 1;
    loop {
        let mut has_died = false;
        for (dies_after_the_call, is_resumed) in
            [(true, true), (false, true), (true, false), (false, false)]
        {
            let life = Life::new(calls, dies_after_the_call);
            let moved = world
                .move_until_death(&life, Duration::from_millis(20))
                .await;
            has_died |= moved.is_none();
            match is_resumed {
                true => {
                    world.resume().await;
                }
                false => world.cancel().await,
            }
            let died = format!("{calls} calls, {dies_after_the_call}, {is_resumed}");
            assert_eq!(world.mover().unfinished().await.unwrap(), None, "{died}");
            for key in &keys {
                assert_eq!(
                    server.get(&id(key)).await.unwrap(),
                    Some(link(key)),
                    "{died}"
                );
            }
            let fresh = &world.keys(
                &format!("new{calls}-{dies_after_the_call}-{is_resumed}-"),
                1,
            )[0];
            let written = server.insert(vec![link(fresh)]).await;
            assert_eq!(written.unwrap(), [true], "writes after {died}");
            live += 1;
            assert_eq!(
                server.counts().await.unwrap().live,
                live,
                "K-2 after {died}"
            );
            let replied = server.begin(&request, &plan(1, &["x"])).await.unwrap();
            assert_eq!(replied, BeginReply::New, "the request after {died}");
            let everything = ListQuery {
                limit: 200,
                ..ListQuery::default()
            };
            let listed = server.list(&everything).await.unwrap();
            assert_eq!(listed.links.len() as u64, live.min(200), "{died}");
        }
        if !has_died {
            break;
        }
        calls += 1;
    }
    assert!(calls > 20, "a move takes more calls than {calls}");
}

/// Writes to the shard wait for a mover that died; the servers end its switch.
#[tokio::test]
async fn a_server_ends_the_switch_of_a_dead_mover() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let stop = CancellationToken::new();
    let mut switches = 0;
    for calls in 6..20 {
        let world = World::in_memory().await;
        let life = Life::new(calls, true);
        let died = world
            .move_until_death(&life, Duration::from_millis(20))
            .await;
        let Some(record) = world.mover().unfinished().await.unwrap() else {
            assert!(died.is_some());
            break;
        };
        if record.phase != MovePhase::Switch {
            let early = world.servers[0].end_abandoned_switch(&clock, &stop).await;
            assert!(!early.unwrap(), "{record:?}");
            continue;
        }
        switches += 1;
        let mut is_ended = false;
        while !is_ended {
            let [one, other] = &world.servers;
            is_ended |= one.end_abandoned_switch(&clock, &stop).await.unwrap();
            is_ended |= other.end_abandoned_switch(&clock, &stop).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(world.mover().unfinished().await.unwrap(), None);
        let written = world.servers[1].insert(vec![link("a")]).await;
        assert_eq!(written.unwrap(), [true]);
    }
    assert!(
        switches >= 3,
        "the mover died in the switch {switches} times"
    );
}

/// A mover that was replaced wakes up, and goes on as if nothing had happened.
#[tokio::test]
async fn a_mover_that_was_replaced_does_no_harm_l4() {
    for calls in 4..40 {
        let world = World::in_memory().await;
        let keys = world.keys("a", 10);
        let links = keys.iter().map(|key| link(key));
        world.servers[0].insert(links.collect()).await.unwrap();
        let to = world.other().await;
        let (gate, stop) = (Life::new(calls, true), CancellationToken::new());
        let sleeper = world.mortal_mover(&gate);
        let asleep = sleeper.move_shard(world.shard, to, &stop, &quiet);
        tokio::pin!(asleep);
        let early = tokio::time::timeout(Duration::from_millis(20), &mut asleep).await;
        if early.is_ok() {
            break;
        }
        world.cancel().await;
        let edited = world.servers[0]
            .delete_at(&id(&keys[0]), Revision::FIRST, NOW)
            .await;
        assert!(matches!(edited.unwrap(), ChangeReply::Changed(_)));
        gate.wake();
        let woken = tokio::time::timeout(Duration::from_secs(5), asleep).await;
        assert!(woken.is_ok(), "the mover hangs after {calls} calls");
        assert_eq!(world.mover().unfinished().await.unwrap(), None);
        let tombstone = world.servers[0].get(&id(&keys[0])).await.unwrap().unwrap();
        assert_ne!(
            tombstone.revision,
            Revision::FIRST,
            "a deleted link is back: {calls}"
        );
        let written =
            world.servers[0].insert(world.keys("n", 1).iter().map(|key| link(key)).collect());
        assert_eq!(written.await.unwrap(), [true], "writes after {calls} calls");
        assert_eq!(world.servers[0].counts().await.unwrap().live, 10);
    }
}

#[tokio::test]
async fn a_node_that_joins_gets_its_share_and_every_link_is_found() {
    let world = World::in_memory().await;
    let keys: Vec<String> = (0..300).map(|n| format!("k{n}")).collect();
    let links = keys.iter().map(|key| link(key));
    world.servers[0].insert(links.collect()).await.unwrap();
    let mut nodes = world.nodes.clone();
    nodes.push(Arc::new(MemoryLinkStore::new()));
    let added = add_nodes(&named(nodes.clone()), &*world.maps, MODULO)
        .await
        .unwrap();
    assert_eq!(added, [NodeIndex(2)]);
    let again = add_nodes(&named(nodes.clone()), &*world.maps, MODULO)
        .await
        .unwrap();
    assert!(again.is_empty());
    let known = known_nodes(&*world.maps).await.unwrap();
    let known: Vec<NodeIndex> = known.into_iter().map(|(node, _)| node).collect();
    let server = over(nodes.clone(), world.maps.clone(), MODULO);
    let map = world.maps.load().await.unwrap();
    let mover = world.mover_over(nodes.clone(), world.maps.clone(), Duration::ZERO);
    let stop = CancellationToken::new();
    let moves = plan_rebalance(&map, &known, Placement::Range).unwrap();
    for planned in &moves {
        let moved = mover.move_shard(planned.shard, planned.to, &stop, &quiet);
        moved.await.unwrap();
    }
    for key in &keys {
        assert_eq!(server.get(&id(key)).await.unwrap(), Some(link(key)));
    }
    let at_new = nodes[2]
        .routed_by(Arc::default())
        .counts()
        .await
        .unwrap()
        .live;
    assert!((60..=140).contains(&at_new), "{at_new} of 300 links");
    // A server that was not told of the node says so, and serves the rest.
    let mut unknown = 0;
    for key in &keys {
        match world.servers[1].get(&id(key)).await {
            Ok(found) => assert_eq!(found, Some(link(key))),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
                unknown += 1;
            }
        }
    }
    assert_eq!(unknown, at_new);
}
