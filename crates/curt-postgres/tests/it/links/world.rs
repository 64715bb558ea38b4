//! What the tests share.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::LinkId;
use curt_core::ports::{InsertReply, InsertRequest, Inserted, SeededDatabase};
use curt_postgres::{Postgres, PostgresSettings};

/// How long a store may be away before a test gives up.
pub(crate) const AWAY_MAX: Duration = Duration::from_secs(60);

pub(crate) type Links = Arc<dyn SeededDatabase>;

pub(crate) fn open(url: &str) -> Links {
    let settings = PostgresSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(url, &settings).unwrap().links()
}

/// Repeats a request as a client with an `Idempotency-Key` does, and returns its links.
pub(crate) async fn insert_until_answered(links: &Links, request: InsertRequest) -> Vec<LinkId> {
    let started = Instant::now();
    loop {
        match links.insert(request.clone()).await {
            Ok(InsertReply::Stored(outcomes)) => {
                assert_eq!(outcomes, vec![Inserted::Created; request.links.len()]);
                return request.links.into_iter().map(|link| link.id).collect();
            }
            Ok(InsertReply::Replayed(replay)) => return replay.ids.into_iter().flatten().collect(),
            Ok(InsertReply::Mismatch) => panic!("a name of another request"),
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
