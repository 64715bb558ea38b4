//! ZooKeeper whose leader dies, whose answers are lost, and from which holders are cut off.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]
#![cfg(feature = "zookeeper")]

mod holder;

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_adapters::zookeeper::{ZooKeeper, ZooKeeperSettings};
use curt_core::ports::{Lease, Locks};
use curt_core::{ErrorKind, PortResult};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::unique;
use curt_testkit::engines::zookeeper::{Ensemble, shared};
use curt_testkit::need;
use holder::{Holder, hold_if_asked};

const SESSION: Duration = Duration::from_secs(4);
/// The longest that the servers allow.
const SESSION_MAX: Duration = Duration::from_secs(10);
const OPERATION: Duration = Duration::from_secs(1);
/// A lease's own time, longer than any test: sessions decide here.
const TTL: Duration = Duration::from_secs(600);
/// How soon after its holder is gone a lock has another one.
const REOWNED_MAX: Duration = SESSION.saturating_add(Duration::from_secs(5));
/// What one call may take: a session and an answer.
const CALL_MAX: Duration = Duration::from_secs(4);

fn open(address: &str) -> Arc<ZooKeeper> {
    open_for(SESSION, address)
}

fn open_for(session_timeout: Duration, address: &str) -> Arc<ZooKeeper> {
    let settings = ZooKeeperSettings {
        session_timeout,
        operation_timeout: OPERATION,
    };
    ZooKeeper::open(address, settings).unwrap()
}

fn address(servers: &str, path: &str) -> String {
    format!("zookeeper://{servers}/{path}")
}

async fn bounded<T>(call: impl Future<Output = PortResult<T>>) -> PortResult<T> {
    let begun = Instant::now();
    let answer = call.await;
    assert!(begun.elapsed() < CALL_MAX, "took {:?}", begun.elapsed());
    answer
}

/// Asks again and again until the answer is there.
async fn eventually<T, F: Future<Output = PortResult<Option<T>>>>(
    most: Duration,
    call: impl Fn() -> F,
) -> T {
    let begun = Instant::now();
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
async fn is_ours(locks: &Arc<dyn Locks>, lease: &Lease) -> bool {
    eventually(REOWNED_MAX, || async {
        match locks.renew(lease, TTL).await {
            Ok(is_ours) => Ok(Some(is_ours)),
            Err(error) => Err(error),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_election_costs_no_lock_and_no_cursor() {
    let mut servers = need!(Ensemble::start(3));
    let zookeeper = open_for(SESSION_MAX, &address(&servers.addresses(), "election"));
    let first = zookeeper.locks("first");
    let second = open(&address(&servers.addresses(), "election")).locks("second");
    let cursor = zookeeper.cursor();
    for round in 0..2 {
        let name = format!("a{round}");
        let lease = bounded(first.acquire(&name, TTL)).await.unwrap().unwrap();
        let leader = servers.kill_leader().unwrap();
        let seen = eventually(REOWNED_MAX, || async { cursor.get("c").await.map(Some) }).await;
        assert_eq!(seen, round, "what was written is there");
        eventually(REOWNED_MAX, || async {
            // After an answer that was lost, the first step may be done already.
            let moved = cursor.advance("c", round, round + 1).await?;
            let done = moved || cursor.get("c").await? == round + 1;
            Ok(done.then_some(()))
        })
        .await;
        assert!(is_ours(&first, &lease).await, "the session lives on");
        let taken = eventually(REOWNED_MAX, || async {
            second
                .acquire(&name, TTL)
                .await
                .map(|lease| Some(lease.is_some()))
        });
        assert!(!taken.await, "held by the first");
        servers.server_mut(leader).unwrap().restart().unwrap();
    }
}

/// Twenty holders are cut off one by one: each learns of its loss, and its lock has a new holder in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_that_is_cut_off_loses_its_lock_and_learns_of_it() {
    let servers = need!(shared());
    let path = unique("cut_off");
    let rounds: Vec<_> = (0..20)
        .map(|round| {
            let servers = Arc::clone(&servers);
            let path = path.clone();
            tokio::spawn(async move { cut_off(&servers, &path, &format!("lock-{round}")).await })
        })
        .collect();
    for round in rounds {
        round.await.unwrap();
    }
}

async fn cut_off(servers: &Ensemble, path: &str, name: &str) {
    let proxy = Proxy::to(servers.address(0).unwrap()).unwrap();
    let first = open(&address(&proxy.address().to_string(), path)).locks("first");
    let second = open(&address(&servers.addresses(), path)).locks("second");
    let old = first.acquire(name, TTL).await.unwrap().unwrap();
    assert!(second.acquire(name, TTL).await.unwrap().is_none());
    proxy.set(Line::Held);
    let begun = Instant::now();
    let new = eventually(REOWNED_MAX, || second.acquire(name, TTL)).await;
    assert!(begun.elapsed() < REOWNED_MAX, "{:?}", begun.elapsed());
    assert!(new.fence > old.fence, "{new:?} after {old:?}");
    // Cut off, it is told so, or that nobody answers; never that the lock is its own.
    let claim = bounded(first.renew(&old, TTL)).await;
    assert!(!claim.as_ref().is_ok_and(|is_ours| *is_ours), "{claim:?}");
    proxy.set(Line::Sound);
    assert!(!is_ours(&first, &old).await);
    let denied = eventually(REOWNED_MAX, || async {
        first
            .acquire(name, TTL)
            .await
            .map(|lease| Some(lease.is_none()))
    });
    assert!(denied.await, "the second holds it");
    first.release(old).await.unwrap();
    assert!(is_ours(&second, &new).await, "released by a stranger");
    second.release(new.clone()).await.unwrap();
    let again = eventually(REOWNED_MAX, || first.acquire(name, TTL)).await;
    assert!(again.fence > new.fence, "{again:?} after {new:?}");
    assert!(is_ours(&first, &again).await, "a new session serves");
}

/// The node was made and the answer lost (ZOOKEEPER-1262). The same call must find that out.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_taken_without_hearing_of_it_is_found() {
    let servers = need!(shared());
    let path = unique("unheard");
    let proxy = Proxy::to(servers.address(0).unwrap()).unwrap();
    let first = open(&address(&proxy.address().to_string(), &path)).locks("first");
    let second = open(&address(&servers.addresses(), &path)).locks("second");
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
    let first = ZooKeeper::open(&through, settings).unwrap().locks("first");
    let second = open(&address(&servers.addresses(), &path)).locks("second");
    let warm = first.acquire("warm", TTL).await.unwrap().unwrap();
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
    let (locks, cursor) = (zookeeper.locks("first"), zookeeper.cursor());
    assert!(cursor.advance("c", 0, 1).await.unwrap());
    let lease = locks.acquire("a", TTL).await.unwrap().unwrap();
    for server in [0, 1] {
        servers.server_mut(server).unwrap().kill().unwrap();
    }
    for _ in 0..3 {
        assert!(bounded(cursor.advance("c", 1, 2)).await.is_err());
        assert!(bounded(locks.acquire("b", TTL)).await.is_err());
        assert!(
            !bounded(locks.renew(&lease, TTL))
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
    eventually(back, || locks.acquire("b", TTL)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_process() {
    hold_if_asked(TTL, |address| open(address).locks("process")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_its_lock() {
    let servers = need!(shared());
    let address = address(&servers.addresses(), &unique("killed"));
    let (holder, fence) = Holder::start(&address, "holder_process");
    let locks = open(&address).locks("second");
    assert!(locks.acquire("a", TTL).await.unwrap().is_none());
    holder.signal("-KILL");
    let lease = eventually(REOWNED_MAX, || locks.acquire("a", TTL)).await;
    assert!(lease.fence > fence, "{} after {fence}", lease.fence);
}

/// A stopped process knows nothing of its session's end. It must hear of it with its first question.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_stopped_past_its_session_learns_that_it_lost_its_lock() {
    let servers = need!(shared());
    let address = address(&servers.addresses(), &unique("stopped"));
    let (mut holder, fence) = Holder::start(&address, "holder_process");
    let locks = open(&address).locks("second");
    tokio::time::sleep(2 * SESSION).await;
    assert!(locks.acquire("a", TTL).await.unwrap().is_none(), "it lives");
    holder.signal("-STOP");
    let lease = eventually(REOWNED_MAX, || locks.acquire("a", TTL)).await;
    assert!(lease.fence > fence, "{} after {fence}", lease.fence);
    holder.signal("-CONT");
    holder.hear("lost it");
    assert!(is_ours(&locks, &lease).await, "the second's still");
}
