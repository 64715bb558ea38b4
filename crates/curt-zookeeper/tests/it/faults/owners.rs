//! The owner of a shard is lost in every way: its lock is owned again in time, it learns of its loss, and the shard
//! refuses what it still sends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_testkit::engines::postgres::{self, Server};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::unique;
use curt_testkit::engines::zookeeper::{Ensemble, shared};
use curt_testkit::length::{length, time_max};
use curt_testkit::need;

use super::world::{
    REOWNED_MAX, SESSION, SESSION_MAX, Shard, TTL, address, bounded, eventually, is_denied,
    is_ours, open, open_for,
};
use curt_testkit::holder::Holder;

/// How long servers may take to agree on a leader, on a busy machine too.
const ELECTION_MAX: Duration = Duration::from_secs(60);
/// How often an owner is lost.
const LOSSES: usize = 20;

/// Owners whose sessions live on keep what they own; what they give up has another owner at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_election_costs_no_lock_and_no_cursor() {
    let mut servers = need!(Ensemble::start(3));
    let database = need!(postgres::shared());
    let shard = Shard::on(&database);
    let zookeeper = open_for(SESSION_MAX, &address(&servers.addresses(), "election"));
    let first = zookeeper.leases("first");
    let second = open(&address(&servers.addresses(), "election")).leases("second");
    let cursor = zookeeper.cursor();
    let mut slowest = Duration::ZERO;
    for round in 0..length(2, 20) {
        let name = format!("a{round}");
        let lease = eventually(REOWNED_MAX, || first.acquire(&name, TTL)).await;
        let leader = servers.kill_leader().unwrap();
        let election = tokio::task::spawn_blocking(move || {
            let begun = Instant::now();
            servers.wait_for_leader().unwrap();
            (servers, begun.elapsed(), Instant::now())
        });
        let seen = eventually(ELECTION_MAX, || async { cursor.get("c").await.map(Some) }).await;
        let found = Instant::now();
        assert_eq!(seen, round, "what was written is there");
        let (back, without_leader, elected) = election.await.unwrap();
        servers = back;
        let late = found.saturating_duration_since(elected);
        assert!(late < time_max(REOWNED_MAX), "{late:?} after the election");
        slowest = slowest.max(late);
        eventually(REOWNED_MAX, || async {
            // After an answer that was lost, the first step may be done already.
            let moved = cursor.advance("c", round, round + 1).await?;
            let done = moved || cursor.get("c").await? == round + 1;
            Ok(done.then_some(()))
        })
        .await;
        let is_kept = is_ours(&first, &lease).await;
        // On a machine that is too busy to elect in time, a session may end before.
        let is_quick = without_leader < SESSION_MAX / 3;
        assert!(is_kept || !is_quick, "the session lives on");
        if is_kept {
            assert!(is_denied(&second, &name).await, "held by the first");
            assert!(shard.obeys(lease.fencing_token).await);
            first.release(lease.clone()).await.unwrap();
        }
        let next = eventually(REOWNED_MAX, || second.acquire(&name, TTL)).await;
        assert!(shard.obeys(next.fencing_token).await);
        assert!(
            !shard.obeys(lease.fencing_token).await,
            "{lease:?} after {next:?}"
        );
        servers.server_mut(leader).unwrap().restart().unwrap();
    }
    println!("a new leader was found {slowest:?} after its election at the slowest");
}

/// Loses owners all at once, and tells how long the slowest of their leases had none.
async fn lose_owners<F: Future<Output = Duration> + Send + 'static>(
    lose: impl Fn(Arc<Ensemble>, Arc<Server>, String) -> F,
    servers: &Arc<Ensemble>,
    database: &Arc<Server>,
) -> Duration {
    let losses = (0..LOSSES).map(|_| {
        let path = unique("lost");
        tokio::spawn(lose(Arc::clone(servers), Arc::clone(database), path))
    });
    let mut slowest = Duration::ZERO;
    for loss in losses.collect::<Vec<_>>() {
        slowest = slowest.max(loss.await.unwrap());
    }
    slowest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_owner_that_is_cut_off_loses_its_lock_and_learns_of_it() {
    let servers = need!(shared());
    let database = need!(postgres::shared());
    let slowest = lose_owners(cut_off, &servers, &database).await;
    println!("cut off: owned again after {slowest:?} at the slowest");
}

async fn cut_off(servers: Arc<Ensemble>, database: Arc<Server>, path: String) -> Duration {
    let shard = Shard::on(&database);
    let proxy = Proxy::to(servers.address(0).unwrap()).unwrap();
    let first = open(&address(&proxy.address().to_string(), &path)).leases("first");
    let second = open(&address(&servers.addresses(), &path)).leases("second");
    let old = eventually(REOWNED_MAX, || first.acquire("a", TTL)).await;
    assert!(is_denied(&second, "a").await, "held by the first");
    assert!(shard.obeys(old.fencing_token).await);
    proxy.set(Line::Held);
    let begun = Instant::now();
    let new = eventually(REOWNED_MAX, || second.acquire("a", TTL)).await;
    let elapsed = begun.elapsed();
    assert!(elapsed < time_max(REOWNED_MAX), "{elapsed:?}");
    assert!(
        new.fencing_token > old.fencing_token,
        "{new:?} after {old:?}"
    );
    assert!(shard.obeys(new.fencing_token).await);
    assert!(
        !shard.obeys(old.fencing_token).await,
        "{old:?} after {new:?}"
    );
    // Cut off, it is told so, or that nobody answers; never that the lock is its own.
    let claim = bounded(first.renew(&old, TTL)).await;
    assert!(!claim.as_ref().is_ok_and(|is_ours| *is_ours), "{claim:?}");
    proxy.set(Line::Sound);
    assert!(!is_ours(&first, &old).await);
    assert!(is_denied(&first, "a").await, "the second holds it");
    first.release(old).await.unwrap();
    assert!(is_ours(&second, &new).await, "released by a stranger");
    second.release(new.clone()).await.unwrap();
    let again = eventually(REOWNED_MAX, || first.acquire("a", TTL)).await;
    assert!(
        again.fencing_token > new.fencing_token,
        "{again:?} after {new:?}"
    );
    assert!(is_ours(&first, &again).await, "a new session serves");
    elapsed
}

/// A stopped process knows nothing of its session's end. It must hear of it with its first question.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_stopped_past_its_session_learns_that_it_lost_its_lock() {
    let servers = need!(shared());
    let database = need!(postgres::shared());
    let slowest = lose_owners(stopped, &servers, &database).await;
    println!("session expired: owned again after {slowest:?} at the slowest");
}

async fn stopped(servers: Arc<Ensemble>, database: Arc<Server>, path: String) -> Duration {
    let shard = Shard::on(&database);
    let address = address(&servers.addresses(), &path);
    let (mut holder, fencing_token) = start(address.clone()).await;
    let leases = open(&address).leases("second");
    tokio::time::sleep(SESSION + SESSION / 2).await;
    assert!(is_denied(&leases, "a").await, "it lives");
    assert!(shard.obeys(fencing_token).await);
    holder.signal("-STOP");
    let begun = Instant::now();
    let lease = eventually(REOWNED_MAX, || leases.acquire("a", TTL)).await;
    let elapsed = begun.elapsed();
    assert!(
        lease.fencing_token > fencing_token,
        "{} after {fencing_token}",
        lease.fencing_token
    );
    assert!(shard.obeys(lease.fencing_token).await);
    holder.signal("-CONT");
    assert!(
        !shard.obeys(fencing_token).await,
        "{fencing_token} after {}",
        lease.fencing_token
    );
    tokio::task::spawn_blocking(move || holder.hear("lost it"))
        .await
        .unwrap();
    assert!(is_ours(&leases, &lease).await, "the second's still");
    elapsed
}

/// A holder's process, without keeping others from going on while it starts.
async fn start(address: String) -> (Holder, u64) {
    let start = move || Holder::start(&address, "faults::holder_process");
    tokio::task::spawn_blocking(start).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_its_lock() {
    let servers = need!(shared());
    let address = address(&servers.addresses(), &unique("killed"));
    let (holder, fencing_token) = start(address.clone()).await;
    let leases = open(&address).leases("second");
    assert!(is_denied(&leases, "a").await, "it lives");
    holder.signal("-KILL");
    let lease = eventually(REOWNED_MAX, || leases.acquire("a", TTL)).await;
    assert!(
        lease.fencing_token > fencing_token,
        "{} after {fencing_token}",
        lease.fencing_token
    );
}
