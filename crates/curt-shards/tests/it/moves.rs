//! Shards that move while links are made, edited, deleted and followed, with movers that die.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use curt_core::ports::{
    BeginReply, ChangeReply, Idempotency, LinkIndex, LinkShards, LinkStore, LinkTotals, ListQuery,
    ShardMaps,
};
use curt_core::{ErrorKind, NodeIndex, Revision, ShardId, SystemClock};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_postgres::Postgres;
use curt_shards::{
    MoveError, MoveProgress, MoveReport, MoverSettings, ShardMover, ShardRouter, add_nodes,
    known_nodes, plan_rebalance,
};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::engines::postgres::shared;
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{NOW, SampleWrites, id, idempotent, link, plan};
use tokio_util::sync::CancellationToken;

use crate::mortal::{Life, Mortal};
use crate::nodes::{MODULO, named, over, settings};

type Nodes = Vec<Arc<dyn LinkShards>>;

/// Two nodes, the keys of one shard, and routers as two servers have them.
#[derive(Clone)]
struct World {
    nodes: Nodes,
    maps: Arc<dyn ShardMaps>,
    shard: ShardId,
    servers: [Arc<ShardRouter>; 2],
}

impl World {
    async fn new(nodes: Nodes, maps: Arc<dyn ShardMaps>) -> Self {
        let servers = [(); 2].map(|()| over(nodes.clone(), maps.clone(), MODULO));
        for server in &servers {
            server.open_map().await.unwrap();
        }
        Self {
            shard: ShardId::of(&id("a")),
            nodes,
            maps,
            servers,
        }
    }

    async fn in_memory() -> Self {
        let node = |_| Arc::new(MemoryLinkStore::new()) as Arc<dyn LinkShards>;
        let nodes = (0..2).map(node).collect();
        Self::new(nodes, Arc::new(MemoryShardMaps::new())).await
    }

    /// Keys of the shard that moves, beginning so.
    fn keys(&self, prefix: &str, count: usize) -> Vec<String> {
        let names = (0..).map(|n| format!("{prefix}{n}"));
        let own = names.filter(|name| ShardId::of(&id(name)) == self.shard);
        own.take(count).collect()
    }

    async fn owner(&self) -> NodeIndex {
        self.maps.load().await.unwrap().node(self.shard)
    }

    async fn other(&self) -> NodeIndex {
        NodeIndex(1 - self.owner().await.0)
    }

    fn mover(&self) -> ShardMover {
        self.mover_over(self.nodes.clone(), self.maps.clone(), Duration::ZERO)
    }

    fn mover_over(
        &self,
        nodes: Nodes,
        maps: Arc<dyn ShardMaps>,
        takeover_after: Duration,
    ) -> ShardMover {
        let settings = MoverSettings {
            items_per_second: None,
            holder: "a test".into(),
            takeover_after,
        };
        ShardMover::new(named(nodes), maps, Arc::new(SystemClock), settings)
    }

    /// A mover that lives for so many calls.
    fn mortal_mover(&self, life: &Arc<Life>) -> ShardMover {
        let mortal = |inner: &Arc<dyn LinkShards>| {
            let (inner, life) = (inner.clone(), life.clone());
            Arc::new(Mortal { inner, life }) as Arc<dyn LinkShards>
        };
        let maps = Mortal {
            inner: self.maps.clone(),
            life: life.clone(),
        };
        let nodes = self.nodes.iter().map(mortal).collect();
        self.mover_over(nodes, Arc::new(maps), Duration::ZERO)
    }

    /// Moves the shard to the other node, by a mover that may die. `None`: it died.
    async fn move_until_death(&self, life: &Arc<Life>, wait: Duration) -> Option<MoveReport> {
        let to = self.other().await;
        let (mover, stop) = (self.mortal_mover(life), CancellationToken::new());
        let moved = mover.move_shard(self.shard, to, &stop, &quiet);
        let moved = tokio::time::timeout(wait, moved).await.ok()?;
        Some(moved.unwrap())
    }

    async fn resume(&self) -> Option<MoveReport> {
        let stop = CancellationToken::new();
        self.mover().resume(&stop, &quiet).await.unwrap()
    }

    async fn cancel(&self) {
        let stop = CancellationToken::new();
        self.mover().cancel(&stop, &quiet).await.unwrap();
    }
}

fn quiet(_: MoveProgress) {}

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
                true => drop(world.resume().await),
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

/// What clients were told.
#[derive(Default)]
struct History {
    /// The owner number that each contended alias was given to.
    winners: HashMap<String, usize>,
    deleted: Vec<String>,
    failures: Vec<String>,
    slowest_write: Duration,
    reads: usize,
}

/// Two servers race for the same aliases of the shard, edit and delete links, and follow them, until told to stop.
async fn run_client(
    world: World,
    number: usize,
    stop: Arc<AtomicBool>,
    history: Arc<Mutex<History>>,
) {
    let server = world.servers[number % 2].clone();
    let names: Vec<String> = world.keys("r", length(2_000, 20_000));
    for key in names.iter().cycle() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let begun = Instant::now();
        let own = curt_core::Link {
            title: Some(number.to_string().into()),
            ..link(key)
        };
        let inserted = server.insert(vec![own]).await;
        let took = begun.elapsed();
        {
            let mut history = history.lock().unwrap();
            history.slowest_write = history.slowest_write.max(took);
            match inserted {
                Ok(won) if won == [true] => {
                    if let Some(other) = history.winners.insert(key.clone(), number) {
                        history
                            .failures
                            .push(format!("K-1: {key} was given to {other} and {number}"));
                    }
                }
                Ok(_) => {}
                Err(error) => history.failures.push(format!("insert {key}: {error}")),
            }
        }
        match server.get(&id(key)).await {
            Ok(Some(_)) => history.lock().unwrap().reads += 1,
            Ok(None) => history
                .lock()
                .unwrap()
                .failures
                .push(format!("L-1: {key} is lost")),
            Err(error) => history
                .lock()
                .unwrap()
                .failures
                .push(format!("follow {key}: {error}")),
        }
        if number == 0 && key.ends_with('7') {
            delete(&server, key, &history).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn delete(server: &ShardRouter, key: &str, history: &Mutex<History>) {
    let deleted = server.delete(&id(key), NOW).await;
    let mut history = history.lock().unwrap();
    match deleted {
        Ok(ChangeReply::Changed(_)) => history.deleted.push(key.to_owned()),
        Ok(_) => {}
        Err(error) => history.failures.push(format!("delete {key}: {error}")),
    }
}

/// Moves the shard to and fro under load, and kills every other mover on its way.
async fn move_under_load(world: World, moves: usize, wait: Duration) {
    let (stop, history) = (
        Arc::new(AtomicBool::new(false)),
        Arc::<Mutex<History>>::default(),
    );
    let followers: Vec<_> = world.servers.iter().cloned().collect();
    let followed = CancellationToken::new();
    let mut tasks = Vec::new();
    for server in followers {
        let followed = followed.clone();
        tasks.push(tokio::spawn(
            async move { server.follow_map(followed).await },
        ));
    }
    for number in 0..4 {
        let client = run_client(world.clone(), number, stop.clone(), history.clone());
        tasks.push(tokio::spawn(client));
    }
    let mut pauses = Vec::new();
    for number in 0..moves {
        let calls = match number % 2 {
            0 => i64::MAX,
            _ => 3 + i64::try_from(number * 7 % 40).unwrap(),
        };
        let life = Life::new(calls, number % 4 == 1);
        let moved = world.move_until_death(&life, wait).await;
        let report = match moved {
            Some(report) => Some(report),
            None => world.resume().await,
        };
        pauses.extend(report.map(|report| report.write_pause));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.store(true, Ordering::SeqCst);
    followed.cancel();
    for task in tasks {
        task.await.unwrap();
    }
    let history = history.lock().unwrap();
    let longest = pauses.iter().max().copied().unwrap_or_default();
    println!(
        "{moves} moves, {} aliases, {} reads, {} deletions, switch at most {longest:?}, slowest write {:?}",
        history.winners.len(),
        history.reads,
        history.deleted.len(),
        history.slowest_write
    );
    assert!(history.failures.is_empty(), "{:#?}", history.failures);
    assert!(
        history.reads > 100 && history.winners.len() > 50,
        "too little load"
    );
    assert!(
        longest <= Duration::from_secs(1),
        "B17: writes waited for {longest:?}"
    );
    for (key, winner) in &history.winners {
        let stored = world.servers[0].get(&id(key)).await.unwrap();
        let stored = stored.unwrap_or_else(|| panic!("L-1: {key} is lost"));
        if history.deleted.contains(key) {
            assert_eq!(
                stored.state,
                curt_core::LinkState::Tombstone,
                "{key} is back"
            );
        } else {
            let title = stored.title.as_deref().map(str::to_owned);
            assert_eq!(title, Some(winner.to_string()), "K-1: {key} is another's");
        }
    }
    let live = history.winners.len() - history.deleted.len();
    let counts = world.servers[0].counts().await.unwrap();
    assert_eq!(counts.live, live as u64, "K-2: {counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_move_loses_nothing_in_memory_k1_l1() {
    let world = World::in_memory().await;
    move_under_load(world, length(8, 160), Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_move_loses_nothing_in_files_k1_l1() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    };
    let file = |n: usize| Sqlite::open(folder.path().join(format!("{n}.db")), settings.clone());
    let files = [file(0).unwrap(), file(1).unwrap()];
    let nodes = files.iter().map(Sqlite::shards).collect();
    let world = World::new(nodes, files[0].shard_maps()).await;
    move_under_load(world, length(6, 120), Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_move_loses_nothing_in_databases_k1_l1() {
    let server = need!(shared());
    let databases = [0; 2].map(|_| server.database("moves").unwrap());
    let open = |url: String| Postgres::open(&url, &settings()).unwrap();
    let nodes = databases.each_ref().map(|database| open(database.url()));
    let maps = nodes[0].shard_maps();
    let world = World::new(nodes.iter().map(Postgres::shards).collect(), maps).await;
    move_under_load(world, length(6, 120), Duration::from_secs(10)).await;
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
    let moves = plan_rebalance(&map, &known, curt_core::Placement::Range).unwrap();
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
