//! What the tests share.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::{BeginReply, CreationOutcome, Inserted, SeededDatabase};
use curt_core::{LinkId, PortResult};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::sample::{id, idempotent, link, plan};

/// How long a store may be away before a test gives up.
pub(crate) const AWAY_MAX: Duration = Duration::from_secs(60);

pub(crate) type Links = Arc<dyn SeededDatabase>;

pub(crate) fn open(url: &str) -> Links {
    Postgres::open(url, &settings()).unwrap().links()
}

pub(crate) fn settings() -> PostgresSettings {
    PostgresSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    }
}

/// Creates a link in the steps of a request with an idempotency key of the same name.
pub(crate) async fn create(links: &Links, key: &str) -> PortResult<LinkId> {
    let request = idempotent(key, 1);
    let planned = match links.begin(&request, &plan(1, &[key])).await? {
        BeginReply::Replayed(outcome) => return Ok(outcome.ids[0].clone().unwrap()),
        BeginReply::Mismatch => panic!("a key of another request"),
        BeginReply::New => plan(1, &[key]),
        BeginReply::Resumed(plan) => plan,
    };
    let token = planned.token;
    let inserted = links.insert_if_absent(vec![link(key)], Some(token)).await?;
    assert_ne!(inserted, [Inserted::Conflict]);
    let outcome = CreationOutcome {
        at: planned.at,
        ids: vec![Some(id(key))],
    };
    let outcome = links.finish(&request, token, outcome).await?;
    Ok(outcome.ids[0].clone().unwrap())
}

/// Repeats a request as a client with an idempotency key does.
pub(crate) async fn create_until_answered(links: &Links, key: &str) -> LinkId {
    let started = Instant::now();
    loop {
        match create(links, key).await {
            Ok(id) => return id,
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                assert!(started.elapsed() < AWAY_MAX, "still away: {error:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

pub(crate) fn assert_distinct(ids: &[LinkId]) {
    let distinct: HashSet<&LinkId> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "K-1: a key is on two links");
}
