//! The channel of invalidations: the suite of its port, and connections that are lost.

use std::sync::Arc;
use std::time::Duration;

use curt_core::Revision;
use curt_core::ports::{Invalidation, InvalidationFeed, Invalidations, LinkChange};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use curt_testkit::sample::id;

fn open(url: &str) -> Arc<dyn Invalidations> {
    let settings = PostgresSettings::default();
    Postgres::open(url, &settings).unwrap().invalidations()
}

curt_testkit::invalidation_tests!({
    let server = need!(shared());
    let database = server.database("invalidations").unwrap();
    let channel = open(&database.url());
    ((server, database), channel)
});

async fn next(feed: &mut Box<dyn InvalidationFeed>) -> Invalidation {
    loop {
        let told = tokio::time::timeout(Duration::from_secs(20), feed.next()).await;
        match told.unwrap().unwrap() {
            Invalidation::Alive { .. } => {}
            told => return told,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_the_engine_ended_is_a_gap_and_then_messages_come_again() {
    let server = need!(shared());
    let database = server.database("invalidations").unwrap();
    let channel = open(&database.url());
    let mut feed = channel.subscribe().await.unwrap();
    let change = LinkChange {
        id: id("a"),
        revision: Revision::FIRST,
    };
    database
        .sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND query IN ('LISTEN curt_invalidations', 'SELECT 1')",
        )
        .unwrap();
    assert_eq!(next(&mut feed).await, Invalidation::Gap);
    channel
        .publish(std::slice::from_ref(&change))
        .await
        .unwrap();
    match next(&mut feed).await {
        Invalidation::Changed { changes, .. } => assert_eq!(*changes, [change]),
        other => panic!("{other:?}"),
    }
}
