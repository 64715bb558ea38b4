//! An idempotent bulk create that is killed after every port call, and retried: each key is on exactly one link, and every
//! answer is the same.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use curt_core::clock::ManualClock;
use curt_core::ports::SeededDatabase;
use curt_core::{ErrorKind, PortError, PortResult};
use curt_links::{
    Created, IdempotencyKey, LinkError, LinkMetrics, LinkSettings, Links, NewLink, ResolveMetrics,
    Resolver, ResolverSettings,
};
use curt_memory::MemoryLinkStore;
use curt_postgres::{Postgres, PostgresSettings};
use curt_sqlite::{Sqlite, SqliteSettings};
use curt_testkit::engines::postgres::shared;
use curt_testkit::intercept::{Call, InterceptedLinks, Interceptor};
use curt_testkit::keys::scripted_supply;
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{SampleWrites, alias};

use crate::world::{ANN, START, generated, id, new};

const TARGET: &str = "https://example.com/";
/// Items that become links; the last one's alias is taken.
const MADE: usize = 5;

/// A process that dies after so many calls.
struct Kill(AtomicUsize);

#[async_trait]
impl Interceptor for Kill {
    async fn before(&self, _call: Call) -> PortResult<()> {
        let is_alive = |left: usize| left.checked_sub(1);
        let took = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_alive);
        let dead = |_| PortError::new(ErrorKind::Timeout, "killed", "answer", "killed");
        took.map(drop).map_err(dead)
    }
}

/// What is told of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Made(String),
    Taken,
    /// Nothing that a retry may not better.
    NotYet,
}

type Answer = Vec<Told>;

fn is_whole(answer: &Answer) -> bool {
    !answer.contains(&Told::NotYet)
}

/// What a life of the process answers, the one that was killed included, as far as it came.
async fn live(
    database: &Arc<dyn SeededDatabase>,
    is_one_at_a_time: bool,
    name: &str,
    calls: usize,
) -> Answer {
    let kill = Kill(AtomicUsize::new(calls));
    let store = match is_one_at_a_time {
        true => InterceptedLinks::one_at_a_time(database.clone(), kill),
        false => InterceptedLinks::new(database.clone(), kill),
    };
    let clock = Arc::new(ManualClock::at(START));
    let resolver = Resolver::new(
        ResolverSettings::default(),
        store.clone(),
        Arc::default(),
        clock.clone(),
        ResolveMetrics::default(),
    );
    // The second key belongs to another link, so that the plan has to be replaced.
    let keys = ["a", "taken", "c", "d"].map(|key| match key {
        "taken" => generated("takenkey"),
        key => generated(&format!("{key}{name}")),
    });
    let links = Links::new(
        LinkSettings::default(),
        store.into(),
        scripted_supply(keys),
        Arc::default(),
        resolver,
        clock,
        LinkMetrics::default(),
    );
    let aliased = |alias: &str| NewLink {
        alias: Some(alias.into()),
        ..new(TARGET)
    };
    let mut items = vec![new(TARGET), new(TARGET), new(TARGET), aliased("mine")];
    items.extend([aliased("yours"), aliased("taken")]);
    let key = IdempotencyKey {
        key: "bulk".into(),
        fingerprint: [7; 32],
    };
    let is_killed = |error: &LinkError| match error {
        LinkError::Store(failure) => failure.backend == "killed",
        _ => false,
    };
    let outcomes = match links.create_many(ANN, items, Some(key)).await {
        Ok(outcomes) => outcomes,
        Err(error) if is_killed(&error) => return vec![Told::NotYet],
        Err(other) => panic!("{other:?}"),
    };
    let told = |outcome| match outcome {
        Ok(Created { link, .. }) => Told::Made(link.id.key.to_string()),
        Err(LinkError::AliasTaken(_)) => Told::Taken,
        Err(error) if is_killed(&error) => Told::NotYet,
        Err(other) => panic!("{other:?}"),
    };
    outcomes.into_iter().map(told).collect()
}

/// Kills the request after each of its calls, the first retry somewhere, and lets two retries at once finish it.
async fn kill_everywhere(open: impl AsyncFn() -> Arc<dyn SeededDatabase>, is_one_at_a_time: bool) {
    for round in 0..length(1, 200) {
        for calls in 0.. {
            let database = open().await;
            let taken = vec![alias("takenkey"), alias("taken")];
            assert_eq!(database.insert(taken).await.unwrap(), [true; 2]);
            let live = |name: &'static str, calls| live(&database, is_one_at_a_time, name, calls);
            let first = live("first", calls).await;
            let second = live("second", (calls * 7 + round) % 12).await;
            let (third, fourth) = tokio::join!(live("third", 999), live("fourth", 999));
            let what = format!("killed after {calls} calls");
            let answer = live("last", 999).await;
            for earlier in [&first, &second, &third, &fourth] {
                for (told, last) in earlier.iter().zip(&answer) {
                    let is_same = [last, &Told::NotYet].contains(&told);
                    assert!(is_same, "{what}: {told:?}, then {last:?}");
                }
            }
            assert!(is_whole(&third) && is_whole(&fourth), "{what}");
            assert_eq!(answer[MADE], Told::Taken, "{what}: the alias was taken");
            let made = answer.iter().filter_map(|told| match told {
                Told::Made(key) => Some(key),
                _ => None,
            });
            let keys: HashSet<&String> = made.collect();
            assert_eq!(keys.len(), MADE, "K-1, {what}: {answer:?}");
            for key in keys {
                let link = database.get(&id(key)).await.unwrap();
                assert_eq!(link.unwrap().owner, ANN.owner, "K-1, {what}");
            }
            let counts = database.counts().await.unwrap();
            assert_eq!(counts.live, MADE as u64 + 2, "K-1, {what}: no link beside");
            if is_whole(&first) {
                assert!(
                    calls >= 5,
                    "begin, insert, replace the plan, insert, finish"
                );
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_bulk_is_finished_by_its_retries_on_memory_one_link_at_a_time_k1() {
    kill_everywhere(async || Arc::new(MemoryLinkStore::new()) as _, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_bulk_is_finished_by_its_retries_on_sqlite_k1() {
    let folder = tempfile::tempdir().unwrap();
    let files = AtomicUsize::new(0);
    let open = async || {
        let file = files.fetch_add(1, Ordering::Relaxed).to_string();
        let settings = SqliteSettings::default();
        let database = Sqlite::open(folder.path().join(file), settings).unwrap();
        database.links()
    };
    kill_everywhere(&open, false).await;
    kill_everywhere(&open, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_bulk_is_finished_by_its_retries_on_postgres_k1() {
    let server = need!(shared());
    let database = server.database("killed").unwrap();
    let settings = PostgresSettings::default().with_timeout(std::time::Duration::from_secs(30));
    let links = Postgres::open(&database.url(), &settings).unwrap().links();
    links.ping().await.unwrap();
    let open = async || {
        database
            .sql("delete from link_tags; delete from links; delete from idempotency; update link_counts set live = 0")
            .unwrap();
        links.clone()
    };
    kill_everywhere(&open, false).await;
    kill_everywhere(&open, true).await;
}
