//! What the tests share: holders of leases, patience, and a ledger that knows its owners by their fencing tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::PortResult;
use curt_core::ports::LedgerForm;
use curt_core::ports::{KeyLedger, Lease, Leases};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::engines::postgres::{Database, Server};
use curt_testkit::engines::unique;
use curt_testkit::length::time_max;
use curt_testkit::sample::key;
use curt_zookeeper::{ZooKeeper, ZooKeeperSettings};

pub(crate) const SESSION: Duration = Duration::from_secs(4);
/// The longest that the servers allow.
pub(crate) const SESSION_MAX: Duration = Duration::from_secs(10);
pub(crate) const OPERATION: Duration = Duration::from_secs(1);
/// A lease's own time, longer than any test: sessions decide here.
pub(crate) const TTL: Duration = Duration::from_secs(600);
/// How soon after its holder is gone a lock has another one.
pub(crate) const REOWNED_MAX: Duration = SESSION.saturating_add(Duration::from_secs(5));
/// What one call may take: a session and an answer.
const CALL_MAX: Duration = Duration::from_secs(4);

pub(crate) fn open(address: &str) -> Arc<ZooKeeper> {
    open_for(SESSION, address)
}

pub(crate) fn open_for(session_timeout: Duration, address: &str) -> Arc<ZooKeeper> {
    let settings = ZooKeeperSettings {
        session_timeout,
        operation_timeout: OPERATION,
    };
    ZooKeeper::open(address, settings).unwrap()
}

pub(crate) fn address(servers: &str, path: &str) -> String {
    format!("zookeeper://{servers}/{path}")
}

pub(crate) async fn bounded<T>(call: impl Future<Output = PortResult<T>>) -> PortResult<T> {
    let begun = Instant::now();
    let answer = call.await;
    assert!(
        begun.elapsed() < time_max(CALL_MAX),
        "took {:?}",
        begun.elapsed()
    );
    answer
}

/// Asks again and again until the answer is there.
pub(crate) async fn eventually<T, F: Future<Output = PortResult<Option<T>>>>(
    most: Duration,
    call: impl Fn() -> F,
) -> T {
    let (begun, most) = (Instant::now(), time_max(most));
    loop {
        match bounded(call()).await {
            Ok(Some(answer)) => return answer,
            Ok(None) => {}
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        assert!(begun.elapsed() < most, "not within {most:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a renewal says whether the lease is still there.
pub(crate) async fn is_ours(leases: &Arc<dyn Leases>, lease: &Lease) -> bool {
    eventually(REOWNED_MAX, || async {
        leases.renew(lease, TTL).await.map(Some)
    })
    .await
}

/// Waits until it is said whether the lock can be had.
pub(crate) async fn is_denied(leases: &Arc<dyn Leases>, name: &str) -> bool {
    let denied = || async {
        let lease = leases.acquire(name, TTL).await?;
        Ok(Some(lease.is_none()))
    };
    eventually(REOWNED_MAX, denied).await
}

/// What the owner of a lock works on.
pub(crate) struct Shard {
    ledger: Arc<dyn KeyLedger>,
    _database: Database,
}

impl Shard {
    pub(crate) fn on(server: &Arc<Server>) -> Self {
        let database = server.database("owned").unwrap();
        // The machine may be busy with other tests.
        let settings = PostgresSettings {
            connect_timeout: Duration::from_secs(30),
            ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
        };
        let postgres = Postgres::open(&database.url(), &settings).unwrap();
        Self {
            ledger: postgres.ledger(LedgerForm::Delete),
            _database: database,
        }
    }

    /// Whether it takes keys from the owner with this fencing token.
    pub(crate) async fn obeys(&self, fencing_token: u64) -> bool {
        let keys = [key(&unique("k"))];
        let inserted = self
            .ledger
            .insert_fenced(fencing_token, &keys)
            .await
            .unwrap();
        inserted.is_some()
    }
}
