//! Answers that are lost, and servers that cannot answer.

use std::time::Duration;

use curt_core::ErrorKind;
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::unique;
use curt_testkit::engines::zookeeper::{Ensemble, shared};
use curt_testkit::length::length;
use curt_testkit::need;
use curt_zookeeper::{ZooKeeper, ZooKeeperSettings};

use super::world::{
    OPERATION, SESSION, SESSION_MAX, TTL, address, bounded, eventually, is_ours, open,
};

/// The node was made and the answer lost (ZOOKEEPER-1262). The same call must find that out.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_taken_without_hearing_of_it_is_found() {
    let servers = need!(shared());
    let path = unique("unheard");
    let proxy = Proxy::to(servers.address(0).unwrap()).unwrap();
    // A call that lasts until the line is cut, on a busy machine too.
    let settings = ZooKeeperSettings {
        session_timeout: SESSION_MAX,
        operation_timeout: length(SESSION_MAX, OPERATION),
    };
    let through = address(&proxy.address().to_string(), &path);
    let first = ZooKeeper::open(&through, settings).unwrap().leases("first");
    let second = open(&address(&servers.addresses(), &path)).leases("second");
    let warm = first.acquire("warm", TTL).await.unwrap().unwrap();
    proxy.set(Line::Deaf);
    let fault = async {
        let is_there = || async {
            let holder = second.holder("a").await?;
            Ok(holder.map(|_| ()))
        };
        eventually(OPERATION, is_there).await;
        proxy.set(Line::Cut);
        tokio::time::sleep(Duration::from_millis(50)).await;
        proxy.set(Line::Sound);
    };
    let (lease, ()) = tokio::join!(first.acquire("a", TTL), fault);
    let lease = lease.unwrap().unwrap();
    assert!(is_ours(&first, &lease).await);
    assert!(is_ours(&first, &warm).await, "the same session");
    assert!(second.acquire("a", TTL).await.unwrap().is_none());
}

/// Nobody knows of the lock, least of all the caller, who gave up. It must not stay for as long as the session.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_nobody_heard_of_is_freed() {
    let servers = need!(shared());
    let path = unique("given_up");
    let proxy = Proxy::to(servers.address(0).unwrap()).unwrap();
    let settings = ZooKeeperSettings {
        session_timeout: SESSION_MAX,
        operation_timeout: Duration::from_millis(300),
    };
    let through = address(&proxy.address().to_string(), &path);
    let first = ZooKeeper::open(&through, settings).unwrap().leases("first");
    let second = open(&address(&servers.addresses(), &path)).leases("second");
    let warm = eventually(SESSION, || first.acquire("warm", TTL)).await;
    proxy.set(Line::Deaf);
    let error = first.acquire("a", TTL).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert_eq!(second.holder("a").await.unwrap().as_deref(), Some("first"));
    proxy.set(Line::Sound);
    eventually(SESSION, || second.acquire("a", TTL)).await;
    assert!(is_ours(&first, &warm).await, "the session lives on");
}

/// Without a majority nothing is decided, and nobody hangs.
#[tokio::test(flavor = "multi_thread")]
async fn an_ensemble_without_a_majority_holds_nobody_up() {
    let mut servers = need!(Ensemble::start(3));
    let zookeeper = open(&address(&servers.addresses(), "minority"));
    let (leases, cursor) = (zookeeper.leases("first"), zookeeper.cursor());
    assert!(cursor.advance("c", 0, 1).await.unwrap());
    let lease = leases.acquire("a", TTL).await.unwrap().unwrap();
    for server in [0, 1] {
        servers.server_mut(server).unwrap().kill().unwrap();
    }
    for _ in 0..3 {
        assert!(bounded(cursor.advance("c", 1, 2)).await.is_err());
        assert!(bounded(leases.acquire("b", TTL)).await.is_err());
        assert!(
            !bounded(leases.renew(&lease, TTL))
                .await
                .is_ok_and(|is_ours| is_ours)
        );
    }
    for server in [0, 1] {
        servers.server_mut(server).unwrap().restart().unwrap();
    }
    let back = Duration::from_secs(20);
    let seen = eventually(back, || async { cursor.get("c").await.map(Some) }).await;
    assert!([1, 2].contains(&seen), "{seen}");
    eventually(back, || leases.acquire("b", TTL)).await;
}
