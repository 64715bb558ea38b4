//! Links in an engine that spreads tables over its own servers: the suites run against the one that `CURT_TEST_ROUTING_URL`
//! names (Citus, CockroachDB, YugabyteDB), and else against a plain PostgreSQL with the same statements.

use std::time::Duration;

use anyhow::Result;
use curt_postgres::{DISTRIBUTED_LINKS, Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::engines::unique;
use curt_testkit::sample::link;
use curt_testkit::{need, skipped};
use tokio_postgres::{Client, NoTls};

use crate::links::world;

const ROUTING_URL: &str = "CURT_TEST_ROUTING_URL";

/// What is done beside `curt migrate` in a Citus, as docs/operations.md says.
const SPREAD: [&str; 5] = [
    "SELECT create_distributed_table('links', 'key')",
    "SELECT create_distributed_table('released_links', 'key', colocate_with => 'links')",
    "SELECT create_distributed_table('idempotency', 'name')",
    "SELECT create_distributed_table('pings', 'slot')",
    "SELECT create_reference_table('cursors')",
];

fn settings() -> PostgresSettings {
    PostgresSettings {
        totals_interval: Duration::ZERO,
        ..world::settings()
    }
}

/// A database of one's own, or a schema of one's own in the engine that was given.
async fn fresh() -> Result<(Option<Database>, Postgres)> {
    let Ok(url) = std::env::var(ROUTING_URL) else {
        let database = shared()?.database("distributed")?;
        let url = database.url() + "?sharding=engine";
        return Ok((Some(database), Postgres::open(&url, &settings())?));
    };
    let schema = unique("curt");
    let client = connect(&url).await;
    client
        .batch_execute(&format!("CREATE SCHEMA {schema}"))
        .await?;
    let sign = if url.contains('?') { '&' } else { '?' };
    let own = format!("{url}{sign}options=-csearch_path%3D{schema}");
    let database = Postgres::open(&format!("{own}&sharding=engine"), &settings())?;
    database.migrate(&DISTRIBUTED_LINKS).await?;
    let client = connect(&own).await;
    if client
        .query_one("SELECT citus_version()", &[])
        .await
        .is_ok()
    {
        for statement in SPREAD {
            client.batch_execute(statement).await?;
        }
    }
    Ok((None, database))
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

macro_rules! fresh_links {
    () => {{
        let (database, engine) = need!(fresh().await);
        (database, engine.distributed_links())
    }};
}

curt_testkit::link_tests!(fresh_links!());

curt_testkit::cursor_tests!({
    let (database, engine) = need!(fresh().await);
    (database, engine.cursor())
});

#[test]
fn the_suites_ran_against_a_routing_engine() {
    if std::env::var(ROUTING_URL).is_err() {
        skipped::say(
            "links::distributed",
            "CURT_TEST_ROUTING_URL names no engine; the suites ran with its statements on a plain PostgreSQL",
        );
    }
}

/// Many processes start at once.
#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_once_by_many_without_a_lock() {
    let database = need!(shared()).database("distributed").unwrap();
    let url = database.url() + "?sharding=engine";
    let starts = (0..8).map(|number| {
        let links = Postgres::open(&url, &settings())
            .unwrap()
            .distributed_links();
        tokio::spawn(async move {
            let inserted = links.insert_if_absent(vec![link(&format!("key-{number}"))], None);
            inserted.await.map(drop)
        })
    });
    for start in starts.collect::<Vec<_>>() {
        start.await.unwrap().unwrap();
    }
    assert_eq!(database.sql("select count(*) from links").unwrap(), "8");
}

/// Such engines end transactions at any time because of others.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_engine_rolled_back_because_of_others_is_run_again() {
    let database = need!(shared()).database("distributed").unwrap();
    let name = database.name().to_owned();
    let serializable =
        format!("alter database {name} set default_transaction_isolation = 'serializable'");
    need!(shared()).sql(&serializable).unwrap();
    let url = database.url() + "?sharding=engine";
    let links = Postgres::open(&url, &settings())
        .unwrap()
        .distributed_links();
    let limited = curt_core::Link {
        max_clicks: Some(64),
        ..link("limited")
    };
    let id = limited.id.clone();
    links.insert_if_absent(vec![limited], None).await.unwrap();
    let revision = links.get(&id).await.unwrap().unwrap().revision;
    // All of them change one row, which the engine lets one transaction do at a time.
    let spends = (0..80).map(|_| links.spend_click(&id, revision));
    let spends = futures_util::future::join_all(spends).await;
    let granted = spends
        .into_iter()
        .filter(|reply| *reply.as_ref().unwrap() == curt_core::ports::SpendReply::Granted);
    assert_eq!(granted.count(), 64);
}
