//! An engine that takes its time.

use std::time::Duration;

use curt_core::ErrorKind;
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::shared;
use curt_testkit::need;

use crate::clicks::world::{link, one_click, open, total};

/// Makes every statement that adds single clicks take longer than a report may. Reports of these tests have long enough on a
/// busy machine.
const SLOW: &str = "create function slow() returns trigger language plpgsql as \
     'begin perform pg_sleep(4); return null; end'; \
     create trigger slow after insert on click_blocks for each statement execute function slow()";

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_may_take_longer_than_a_report() {
    let server = need!(shared());
    let database = server.database("busy").unwrap();
    assert!(open(&database.url()).apply(one_click(1, 0)).await.unwrap());
    database.sql(SLOW).unwrap();
    let settings = PostgresSettings {
        background_timeout: Duration::from_secs(3),
        flush_timeout: Duration::from_secs(60),
        ..PostgresSettings::default()
    };
    let clicks = Postgres::open(&database.url(), &settings).unwrap().clicks();
    assert!(clicks.apply(one_click(1, 1)).await.unwrap());
    assert_eq!(total(&clicks, &link("a")).await, 2);

    // It has an end of its own, after which nothing was counted.
    let settings = PostgresSettings {
        flush_timeout: Duration::from_millis(500),
        ..settings
    };
    let clicks = Postgres::open(&database.url(), &settings).unwrap().clicks();
    let refused = clicks.apply(one_click(1, 2)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable, "{refused:?}");
    assert_eq!(total(&clicks, &link("a")).await, 2);
}
