//! Records of idempotent requests do not pile up.

use std::time::Duration;

use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::InsertRequest;
use curt_testkit::engines::postgres::shared;
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::{NOW, alias, link, once, request, request_once};

use crate::links::world::{insert_until_answered, open};

#[tokio::test(flavor = "multi_thread")]
async fn old_records_go_as_new_ones_come() {
    let server = need!(shared());
    let database = server.database("records").unwrap();
    let links = open(&database.url());
    insert_until_answered(&links, request_once(vec![link("first")], once("first", 1))).await;
    database
        .sql(&format!(
            "insert into idempotency (owner, name, fingerprint, created_at, outcome) \
             select 1, n::text, '', {}, '{{}}' from generate_series(1, 5000) n",
            NOW.0
        ))
        .unwrap();
    let now = NOW.plus(IDEMPOTENCY_KEPT).plus(Duration::from_secs(1));
    // A taken alias is recorded like any other answer.
    links.insert(request(vec![alias("taken")])).await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..1_000 {
        let links = std::sync::Arc::clone(&links);
        let late = InsertRequest {
            now,
            ..request_once(vec![alias("taken")], once(&format!("late{n}"), 0))
        };
        waiting.spawn(async move { links.insert(late).await.unwrap() });
    }
    waiting.join_all().await;
    let old = format!(
        "select count(*) from idempotency where created_at < {}",
        now.0
    );
    let started = std::time::Instant::now();
    while database.sql(&old).unwrap() != "0" {
        assert!(
            started.elapsed() < time_max(Duration::from_secs(20)),
            "old records stay"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let all = database.sql("select count(*) from idempotency").unwrap();
    assert_eq!(all, "1000", "and the new ones stay");
}
