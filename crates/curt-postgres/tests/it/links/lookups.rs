//! Look-ups that come faster than they are answered: they share statements, and each gets the answer to its own key.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use curt_testkit::sample::{SampleWrites, id, link};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::links::world::{Links, settings};

const LOOKUPS: usize = 100;
const LOCK: &str = "begin; lock table links in access exclusive mode";
/// Look-ups that the engine keeps waiting: of one key, and of several.
const ALONE: &str = "select count(*) from pg_stat_activity where datname = current_database() \
    and wait_event_type = 'Lock' and query like '%FROM links WHERE domain = %'";
const TOGETHER: &str = "select count(*) from pg_stat_activity where datname = current_database() \
    and wait_event_type = 'Lock' and query like '%WITH ORDINALITY%' and state = 'active'";

fn open(database: &Database) -> Links {
    let settings = PostgresSettings {
        lookup_connections: NonZeroUsize::MIN,
        ..settings()
    };
    Postgres::open(&database.url(), &settings).unwrap().links()
}

async fn connect(database: &Database) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

async fn await_one(database: &Database, waiting: &str) {
    while database.sql(waiting).unwrap() == "0" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn key(number: usize) -> String {
    format!("k{number}")
}

/// Every third key is on no link.
fn is_there(number: usize) -> bool {
    !number.is_multiple_of(3)
}

async fn store(links: &Links) {
    let there = (0..LOOKUPS).filter(|number| is_there(*number));
    let stored = there.map(|number| link(&key(number))).collect();
    links.insert(stored).await.unwrap();
}

type Asked = JoinHandle<Option<curt_core::Link>>;

fn ask(links: &Links, number: usize) -> Asked {
    let links = Arc::clone(links);
    tokio::spawn(async move { links.get(&id(&key(number))).await.unwrap() })
}

async fn assert_answered(number: usize, asked: Asked) {
    let answer = asked.await.unwrap();
    let found = answer.map(|link| link.id);
    assert_eq!(
        found,
        is_there(number).then(|| id(&key(number))),
        "{number}"
    );
}

/// One look-up is at the engine, which keeps it waiting, and the rest waits behind it.
async fn ask_all(links: &Links, database: &Database) -> Vec<Asked> {
    let first = ask(links, 0);
    await_one(database, ALONE).await;
    let mut asked = vec![first];
    for number in 1..LOOKUPS {
        asked.push(ask(links, number));
        tokio::task::yield_now().await;
    }
    asked
}

#[tokio::test]
async fn look_ups_that_wait_share_a_statement_and_outlive_its_leader() {
    let database = need!(shared()).database("lookups").unwrap();
    let links = open(&database);
    store(&links).await;
    // The connection is there, and its statements are prepared.
    assert!(links.get(&id(&key(1))).await.unwrap().is_some());
    let (first_lock, second_lock) = (connect(&database).await, connect(&database).await);
    first_lock.batch_execute(LOCK).await.unwrap();
    let mut asked = ask_all(&links, &database).await;
    // Gets its turn behind the look-up that waits already, and before those that do not yet.
    let locked = tokio::spawn(async move {
        second_lock.batch_execute(LOCK).await.unwrap();
        second_lock
    });
    let queued = "select count(*) from pg_stat_activity where datname = current_database() \
        and wait_event_type = 'Lock' and query like 'begin; lock%'";
    await_one(&database, queued).await;
    first_lock.batch_execute("rollback").await.unwrap();
    assert_answered(0, asked.remove(0)).await;
    let second_lock = locked.await.unwrap();
    await_one(&database, TOGETHER).await;

    let leader = asked.remove(0);
    assert!(
        !leader.is_finished(),
        "a look-up was answered under the lock"
    );
    leader.abort();
    leader.await.unwrap_err();
    second_lock.batch_execute("rollback").await.unwrap();
    for (number, asked) in (2..).zip(asked) {
        assert_answered(number, asked).await;
    }
    // And the place is free again.
    assert_answered(1, ask(&links, 1)).await;
}
