//! What the tests share: opening, minting, and taking until nothing is left, whatever goes wrong meanwhile.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::Key;
use curt_core::ports::LedgerForm;
use curt_core::ports::{BatchId, KeyLedger};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::Database;
use curt_testkit::sample::{NOW, batch, keys};
use tokio::task::JoinSet;

pub(crate) const FORMS: [LedgerForm; 4] = [
    LedgerForm::Delete,
    LedgerForm::Status,
    LedgerForm::UsedTable,
    LedgerForm::Cursor,
];

/// How long a ledger may be away before a test gives up.
const AWAY_MAX: Duration = Duration::from_secs(60);

pub(crate) type Ledger = Arc<dyn KeyLedger>;

pub(crate) fn open(url: &str) -> Postgres {
    Postgres::open(url, &PostgresSettings::default()).unwrap()
}

/// With as many connections as there will be callers.
pub(crate) fn open_wide(url: &str, connections: usize) -> Postgres {
    let settings = PostgresSettings {
        background_connections: NonZeroUsize::new(connections).unwrap(),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(url, &settings).unwrap()
}

/// A connection of the test's own.
pub(crate) async fn connect(database: &Database) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn mint(ledger: &Ledger, count: usize) {
    for part in keys("k", count).chunks(5_000) {
        assert_eq!(ledger.insert(part).await.unwrap(), part.len() as u64);
    }
}

/// Batches by their names.
pub(crate) type Taken = HashMap<BatchId, Vec<Key>>;

/// Lets `takers` tasks take batches until the ledger is empty. A call that fails is repeated under the same name, as
/// every caller of the port does.
pub(crate) async fn drain(ledger: &Ledger, takers: usize, limit: usize) -> Taken {
    let mut tasks = JoinSet::new();
    for taker in 0..takers {
        let ledger = Arc::clone(ledger);
        tasks.spawn(async move {
            let mut own = Vec::new();
            for n in 0.. {
                let name = batch(&format!("{taker}-{n}"));
                let taken = take_until_answered(&ledger, &name, limit).await;
                if taken.is_empty() {
                    break;
                }
                own.push((name, taken));
            }
            own
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

pub(crate) async fn take_until_answered(ledger: &Ledger, name: &BatchId, limit: usize) -> Vec<Key> {
    let started = Instant::now();
    loop {
        match ledger.take(name, limit, NOW).await {
            Ok(taken) => return taken,
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                assert!(started.elapsed() < AWAY_MAX, "still away: {error:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// No key in two batches, none missing, no batch over the limit (K-3).
pub(crate) fn assert_complete(taken: &Taken, count: usize, limit: usize) {
    let largest = taken.values().map(Vec::len).max().unwrap_or(0);
    assert!(
        largest <= limit,
        "K-3: {largest} keys over a limit of {limit}"
    );
    let mut all: Vec<&Key> = taken.values().flatten().collect();
    let with_copies = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), with_copies, "a key is in two batches");
    assert_eq!(all.len(), count, "keys are missing");
}
