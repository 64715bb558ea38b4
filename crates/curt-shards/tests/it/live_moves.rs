//! A shard moves to and fro while two servers race for its links, follow, edit and delete them, and movers die.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use curt_core::ports::{ChangeReply, LinkStore, LinkTotals};
use curt_core::{Clock, ErrorKind, Link, LinkState, SystemClock};
use curt_postgres::Postgres;
use curt_shards::ShardRouter;
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::engines::postgres::shared;
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{NOW, SampleWrites, id, link};
use tokio_util::sync::CancellationToken;

use crate::mortal::Life;
use crate::nodes::settings;
use crate::world::World;

/// What clients were told.
#[derive(Default)]
struct History {
    /// The owner number that each contended alias was given to.
    winners: HashMap<String, usize>,
    deleted: Vec<String>,
    failures: Vec<String>,
    slowest_write: Duration,
    reads: usize,
    /// Writes that waited for a mover that died, until they were refused.
    refused: usize,
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
        let own = Link {
            title: Some(number.to_string().into()),
            ..link(key)
        };
        let inserted = server.insert(vec![own]).await;
        let took = begun.elapsed();
        {
            let mut history = locked(&history);
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
                // While nobody knew that the mover was dead.
                Err(error) if error.kind == ErrorKind::Unavailable => {
                    history.refused += 1;
                    continue;
                }
                Err(error) => history.failures.push(format!("insert {key}: {error}")),
            }
        }
        match server.get(&id(key)).await {
            Ok(Some(_)) => locked(&history).reads += 1,
            Ok(None) => locked(&history)
                .failures
                .push(format!("L-1: {key} is lost")),
            Err(error) => locked(&history)
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
    let mut history = locked(history);
    match deleted {
        Ok(ChangeReply::Changed(_)) => history.deleted.push(key.to_owned()),
        Ok(_) => {}
        Err(error) if error.kind == ErrorKind::Unavailable => history.refused += 1,
        Err(error) => history.failures.push(format!("delete {key}: {error}")),
    }
}

/// Moves the shard to and fro under load, and kills every other mover on its way.
async fn move_under_load(world: World, moves: usize, wait: Duration) {
    let (stop, history) = (
        Arc::new(AtomicBool::new(false)),
        Arc::<Mutex<History>>::default(),
    );
    let followed = CancellationToken::new();
    let mut tasks = Vec::new();
    for server in world.servers.clone() {
        let followed = followed.clone();
        let follow = async move { server.follow_map(followed).await };
        tasks.push(tokio::spawn(follow));
    }
    for server in world.servers.clone() {
        let followed = followed.clone();
        tasks.push(tokio::spawn(end_switches(server, followed)));
    }
    for number in 0..4 {
        let client = run_client(world.clone(), number, stop.clone(), history.clone());
        tasks.push(tokio::spawn(client));
    }
    let mut longest = Duration::ZERO;
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
        longest = longest.max(report.unwrap_or_default().write_pause);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.store(true, Ordering::SeqCst);
    followed.cancel();
    for task in tasks {
        task.await.unwrap();
    }
    let history = std::mem::take(&mut *locked(&history));
    println!(
        "{moves} moves, {} aliases, {} reads, {} deletions, {} refused, switch at most {longest:?}, slowest write {:?}",
        history.winners.len(),
        history.reads,
        history.deleted.len(),
        history.refused,
        history.slowest_write
    );
    assert!(
        longest <= Duration::from_secs(1),
        "B17: writes waited for {longest:?}"
    );
    check(&world, &history).await;
}

/// As every server does it.
async fn end_switches(server: Arc<ShardRouter>, stop: CancellationToken) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    while !stop.is_cancelled() {
        server.end_abandoned_switch(&clock, &stop).await.unwrap();
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Everything is as the clients were told.
async fn check(world: &World, history: &History) {
    assert!(history.failures.is_empty(), "{:#?}", history.failures);
    assert!(
        history.reads > 100 && history.winners.len() > 50,
        "too little load"
    );
    for (key, winner) in &history.winners {
        let stored = world.servers[0].get(&id(key)).await.unwrap();
        let stored = stored.unwrap_or_else(|| panic!("L-1: {key} is lost"));
        if history.deleted.contains(key) {
            assert_eq!(stored.state, LinkState::Tombstone, "{key} is back");
        } else {
            let title = stored.title.as_deref().map(str::to_owned);
            assert_eq!(title, Some(winner.to_string()), "K-1: {key} is another's");
        }
    }
    let live = history.winners.len() - history.deleted.len();
    let counts = world.servers[0].counts().await.unwrap();
    assert_eq!(counts.live, live as u64, "K-2: {counts:?}");
}

fn locked(history: &Mutex<History>) -> MutexGuard<'_, History> {
    history.lock().unwrap()
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
