//! Calls that do not come to an end: refused in time, and no more of the engine held than their own pool.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Pair, shared};
use curt_testkit::need;
use curt_testkit::sample::{NOW, SampleWrites, id, link};
use tokio::task::{JoinSet, spawn_blocking};

use crate::links::world::{AWAY_MAX, Links, create_until_answered};

const WRITES: usize = 3;

/// Few connections for writes, and a short deadline for them alone.
fn open(url: &str) -> Links {
    let settings = PostgresSettings {
        write_connections: NonZeroUsize::new(WRITES).unwrap(),
        write_timeout: Duration::from_millis(600),
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(url, &settings).unwrap().links()
}

/// Commits of a primary without its synchronous standby cannot be stopped: each holds a process of the engine.
#[tokio::test(flavor = "multi_thread")]
async fn stuck_commits_hold_their_own_pool_and_nothing_else() {
    let mut pair = need!(Pair::start());
    pair.make_synchronous().unwrap();
    let url = pair.url("postgres");
    let links = open(&url);
    let stored = (0..8).map(|n| link(&format!("k{n}"))).collect();
    links.insert(stored).await.unwrap();
    let mut pair = spawn_blocking(move || {
        pair.kill_standby().unwrap();
        pair
    })
    .await
    .unwrap();
    for round in 0..4 {
        let mut writes = JoinSet::new();
        for n in 0..8 {
            let links = Arc::clone(&links);
            writes.spawn(async move {
                match n % 2 {
                    0 => links.delete(&id(&format!("k{n}")), NOW).await.err(),
                    _ => {
                        let new = link(&format!("new{round}-{n}"));
                        links.insert(vec![new]).await.err()
                    }
                }
            });
        }
        for refusal in writes.join_all().await {
            let error = refusal.unwrap();
            assert!(error.is_transient(), "{error:?}");
        }
        assert!(links.get(&id("k1")).await.unwrap().is_some());
    }
    let stuck = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
    let stuck: usize = pair.primary().sql(stuck).unwrap().parse().unwrap();
    assert!((1..=WRITES).contains(&stuck), "{stuck} commits are stuck");

    let _pair = spawn_blocking(move || {
        pair.restart_standby().unwrap();
        pair
    })
    .await
    .unwrap();
    create_until_answered(&links, "again").await;
}

/// A client that hangs up takes its call along, but not the engine's answer to it.
#[tokio::test(flavor = "multi_thread")]
async fn the_connection_of_an_abandoned_call_is_used_again_when_it_was_answered() {
    let database = need!(shared()).database("abandoned").unwrap();
    let settings = PostgresSettings {
        write_connections: NonZeroUsize::MIN,
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    let postgres = Postgres::open(&database.url(), &settings).unwrap();
    let links = postgres.links();
    links.insert(vec![link("a"), link("b")]).await.unwrap();
    let (lock, connection) = tokio_postgres::connect(&database.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let hold = "begin; select from links where key = 'a' for update";
    lock.batch_execute(hold).await.unwrap();

    let call = tokio::spawn({
        let links = Arc::clone(&links);
        async move { links.delete(&id("a"), NOW).await.map(drop) }
    });
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() \
        and application_name = 'curt' and wait_event_type = 'Lock'";
    while database.sql(waiting).unwrap() == "0" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    call.abort();
    call.await.unwrap_err();
    // Nothing is sent behind the call: it would be unknown what becomes of it.
    let other = id("b");
    let behind = links.delete(&other, NOW);
    let behind = tokio::time::timeout(Duration::from_secs(1), behind).await;
    behind.unwrap_err();
    lock.batch_execute("rollback").await.unwrap();
    let look = async {
        while links.delete(&id("b"), NOW).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(AWAY_MAX, look).await.unwrap();
    let opened = "select count(*) from pg_stat_activity where datname = current_database() \
        and application_name = 'curt'";
    assert!(database.sql(opened).unwrap().parse::<usize>().unwrap() <= 3);
}

/// A host that refuses logins, because it has no connections left or is too busy for them, answers on those that it has.
#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_for_a_connection_while_logins_are_refused() {
    let server = need!(shared());
    let database = server.database("crowded").unwrap();
    let settings = PostgresSettings::default().with_timeout(AWAY_MAX);
    let links = Postgres::open(&database.url(), &settings).unwrap().links();
    create_until_answered(&links, "first").await;
    let let_in = |allowed: bool| {
        let name = database.name();
        let statement = format!("alter database \"{name}\" allow_connections {allowed}");
        server.sql(&statement).unwrap()
    };
    let_in(false);
    let mut writes = JoinSet::new();
    for n in 0..16 {
        let links = Arc::clone(&links);
        writes.spawn(async move { links.insert(vec![link(&format!("k{n}"))]).await });
    }
    for outcome in writes.join_all().await {
        outcome.unwrap();
    }
    let_in(true);
}
