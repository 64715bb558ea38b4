//! Redis that is killed, silent, cut off, demoted, emptied and restored.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::Leases;
use curt_core::{ErrorKind, PortError, PortResult};
use curt_redis::{Redis, RedisSettings};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::redis::{Sentinels, Server, shared};
use curt_testkit::engines::unique;
use curt_testkit::holder::{Holder, hold_if_asked};
use curt_testkit::length::{length, time_max};
use curt_testkit::need;
use curt_testkit::sample::{batch, keys};

const CAP: usize = 10_000;
/// What one call may take: a connection with all its steps, or an answer.
const CALL_MAX: Duration = Duration::from_secs(5);
/// How soon after a server is back, or another one is primary, calls succeed again.
const BACK_MAX: Duration = Duration::from_secs(5);

/// Of a lease: in the short form long enough for a holder that renews it on a busy machine.
fn ttl() -> Duration {
    Duration::from_millis(length(3_000, 800))
}

fn open(address: &str) -> Arc<Redis> {
    open_within(Duration::from_millis(500), address)
}

fn open_within(connect_timeout: Duration, address: &str) -> Arc<Redis> {
    let settings = RedisSettings {
        connect_timeout,
        command_timeout: Duration::from_secs(1),
    };
    Redis::open(address, settings).unwrap()
}

fn through(proxy: &Proxy) -> String {
    format!("redis://{}", proxy.address())
}

fn address_of(server: &Server) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], server.port()))
}

/// The answer, which must come in time whether it is good or bad.
async fn bounded<T>(call: impl Future<Output = PortResult<T>>) -> PortResult<T> {
    let begun = Instant::now();
    let answer = call.await;
    assert!(
        begun.elapsed() < time_max(CALL_MAX),
        "took {:?}",
        begun.elapsed()
    );
    answer
}

/// Asks again and again until it works, each time in bounded time, and returns the answer.
async fn once_back<T, F: Future<Output = PortResult<T>>>(call: impl Fn() -> F) -> T {
    let begun = Instant::now();
    loop {
        match bounded(call()).await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                assert!(
                    begun.elapsed() < time_max(Duration::from_secs(30)),
                    "{error}"
                );
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn unknown<T: std::fmt::Debug>(answer: PortResult<T>) {
    let error: PortError = answer.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_repeated_after_a_lost_answer_adds_nothing_twice() {
    let server = need!(Server::start());
    for fault in [Line::Deaf, Line::Cut] {
        let proxy = Proxy::to(address_of(&server)).unwrap();
        let shard = usize::from(fault == Line::Cut);
        let pool = open(&through(&proxy)).pool(shard, CAP);
        pool.push(&batch("first"), &keys("k", 10)).await.unwrap();
        let pushed = keys("l", 500);
        proxy.set(Line::Deaf);
        let name = batch("cut");
        let push = pool.push(&name, &pushed);
        let answer = if fault == Line::Deaf {
            bounded(push).await
        } else {
            let before = proxy.answers_delayed();
            let cut = async {
                let begun = Instant::now();
                while proxy.answers_delayed() == before {
                    assert!(begun.elapsed() < time_max(CALL_MAX), "nothing is answered");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                proxy.set(Line::Cut);
            };
            tokio::join!(bounded(push), cut).0
        };
        unknown(answer);
        proxy.set(Line::Sound);
        let again = once_back(|| pool.push(&name, &pushed)).await;
        assert_eq!(again, 500, "the first answer again");
        let mut want = keys("k", 10);
        want.extend(pushed);
        let popped = pool.pop(CAP).await.unwrap();
        assert!(popped == want, "{fault:?}: {} keys", popped.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_fails_calls_at_once_and_is_found_again() {
    let mut server = need!(Server::start());
    let pool = open(&server.url()).pool(0, CAP);
    pool.push(&batch("a"), &keys("k", 10)).await.unwrap();
    server.run_command(&["SAVE"]).unwrap();
    server.kill().unwrap();
    unknown(bounded(pool.depth()).await);
    for _ in 0..100 {
        let error = bounded(pool.pop(1)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    }
    server.restart().unwrap();
    let back = Instant::now();
    assert_eq!(once_back(|| pool.depth()).await, 10);
    assert!(back.elapsed() < time_max(BACK_MAX), "{:?}", back.elapsed());
}

/// A server that hangs accepts connections all the same. It costs the first call a timeout, not all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_holds_nobody_up() {
    let server = need!(Server::start());
    let pool = open(&server.url()).pool(0, CAP);
    pool.push(&batch("a"), &keys("k", 10)).await.unwrap();
    server.pause().unwrap();
    unknown(bounded(pool.pop(3)).await);
    assert!(bounded(pool.depth()).await.is_err());
    let begun = Instant::now();
    for _ in 0..64 {
        let error = pool.depth().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    }
    assert!(
        begun.elapsed() < time_max(CALL_MAX),
        "{:?}",
        begun.elapsed()
    );
    server.resume().unwrap();
    let back = Instant::now();
    let depth = once_back(|| pool.depth()).await;
    assert!(back.elapsed() < time_max(BACK_MAX), "{:?}", back.elapsed());
    assert!([7, 10].contains(&depth), "popped or not: {depth}");
}

/// Callers share one attempt to connect, and a line that swallows everything keeps none of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_swallows_everything_holds_nobody_up() {
    let server = need!(Server::start());
    let proxy = Proxy::to(address_of(&server)).unwrap();
    let pool = open(&through(&proxy)).pool(0, CAP);
    assert_eq!(pool.depth().await.unwrap(), 0);
    proxy.set(Line::Held);
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { bounded(pool.depth()).await })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap().unwrap_err().is_transient());
    }
    proxy.set(Line::Sound);
    assert_eq!(once_back(|| pool.depth()).await, 0);
}

async fn replicated(servers: &Sentinels) {
    let primary = &servers.servers()[servers.primary().unwrap()];
    let replicas = primary.run_command(&["WAIT", "2", "5000"]).unwrap();
    assert_eq!(replicas, "2");
}

/// What the primary did not pass on is undone by the fail-over: popped keys come back. Only the insert may decide.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_brings_popped_keys_back_and_is_noticed_by_itself() {
    let mut servers = need!(Sentinels::start(2));
    let redis = open(&servers.url());
    let (pool, leases) = (redis.pool(0, CAP), redis.leases("first"));
    pool.push(&batch("a"), &keys("k", 1_000)).await.unwrap();
    let kept = leases.acquire("kept", 60 * ttl()).await.unwrap().unwrap();
    replicated(&servers).await;
    servers.pause_replication().unwrap();
    let popped = pool.pop(100).await.unwrap();
    let forgotten = leases
        .acquire("forgotten", 60 * ttl())
        .await
        .unwrap()
        .unwrap();
    let former = servers.kill_primary().unwrap();
    let election = tokio::task::spawn_blocking(move || {
        let primary = servers.wait_for_failover(former).unwrap();
        (servers, primary, Instant::now())
    });
    let depth = once_back(|| pool.depth()).await;
    let found = Instant::now();
    let (mut servers, primary, elected) = election.await.unwrap();
    let late = found.saturating_duration_since(elected);
    assert!(late < time_max(BACK_MAX), "{late:?} after the fail-over");
    assert_eq!(depth, 1_000, "popped keys are back");
    assert_eq!(pool.pop(100).await.unwrap(), popped);
    assert!(leases.renew(&kept, ttl()).await.unwrap());
    assert!(!leases.renew(&forgotten, ttl()).await.unwrap());
    let again = leases.acquire("forgotten", ttl()).await.unwrap().unwrap();
    assert!(
        again.fencing_token > forgotten.fencing_token,
        "{again:?} after {forgotten:?}"
    );
    servers.server_mut(former).unwrap().restart().unwrap();
    assert_ne!(servers.primary().unwrap(), former);
    pool.push(&batch("b"), &keys("l", 1)).await.unwrap();
    let run =
        |server: usize| servers.servers()[server].run_command(&["LLEN", "available_keys:{0}"]);
    assert_eq!(run(primary).unwrap(), "901");
}

/// The old primary lives on as a replica: its connections are no sign of health.
#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_primary_is_left() {
    let servers = need!(Sentinels::start(2));
    let pool = open(&servers.url()).pool(0, CAP);
    pool.push(&batch("a"), &keys("k", 10)).await.unwrap();
    replicated(&servers).await;
    let former = servers.primary().unwrap();
    let sentinel = SocketAddr::from(([127, 0, 0, 1], servers.sentinel_ports()[0]));
    let mut stream = TcpStream::connect(sentinel).unwrap();
    stream.write_all(b"SENTINEL FAILOVER mymaster\r\n").unwrap();
    let mut answer = [0; 3];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK");
    let demoted = tokio::task::spawn_blocking(move || {
        servers.wait_for_failover(former).unwrap();
        // Until it hears of its demotion, the old primary takes writes that will be lost.
        while !follows(&servers.servers()[former]) {
            std::thread::sleep(Duration::from_millis(10));
        }
        servers
    });
    let servers = demoted.await.unwrap();
    let begun = Instant::now();
    let (name, more) = (batch("b"), keys("l", 5));
    let pushed = once_back(|| pool.push(&name, &more)).await;
    assert!(
        begun.elapsed() < time_max(BACK_MAX),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(pushed, 5);
    let primary = &servers.servers()[servers.primary().unwrap()];
    let depth = primary.run_command(&["LLEN", "available_keys:{0}"]);
    assert_eq!(depth.unwrap(), "15");
}

/// A server that is being demoted cuts off those who ask.
fn follows(server: &Server) -> bool {
    let role = server.run_command(&["ROLE"]);
    role.is_ok_and(|role| role.starts_with("slave"))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_sentinels_are_enough_and_a_silent_one_costs_no_time() {
    let mut servers = need!(Sentinels::start(1));
    servers.sentinel_mut(0).unwrap().pause().unwrap();
    let begun = Instant::now();
    // Whoever waited for the silent one would wait for all of it.
    let patience = Duration::from_secs(length(600, 10));
    open_within(patience, &servers.url()).ping().await.unwrap();
    assert!(begun.elapsed() < patience / 2, "{:?}", begun.elapsed());
    servers.sentinel_mut(1).unwrap().kill().unwrap();
    bounded(open(&servers.url()).ping()).await.unwrap();
    servers.sentinel_mut(2).unwrap().kill().unwrap();
    let error = bounded(open(&servers.url()).ping()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
}

/// A Sentinel that names this port as the primary's, decided in this epoch, and takes its time to say so.
fn sentinel_that_says(port: u16, epoch: u64, after: Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let port = port.to_string();
    let epoch = epoch.to_string();
    let words = ["ip", "127.0.0.1", "port", &port, "config-epoch", &epoch];
    let bulk = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let answer = format!("*{}\r\n{}", words.len(), bulk.concat());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut stream = stream;
            while let Some(Ok(line)) = asked.next() {
                let sent = match &*line {
                    "PING" => stream.write_all(b"+PONG\r\n"),
                    "mymaster" => {
                        std::thread::sleep(after);
                        stream.write_all(answer.as_bytes())
                    }
                    _ => Ok(()),
                };
                sent.ok();
            }
        }
    });
    address
}

/// A Sentinel that was cut off from the others names the old primary, and is the first to answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_youngest_decision_of_a_majority_of_sentinels_counts() {
    let old = need!(Server::start());
    let new = need!(Server::start());
    let sentinels = [
        sentinel_that_says(old.port(), 1, Duration::ZERO),
        sentinel_that_says(new.port(), 2, Duration::from_millis(100)),
        sentinel_that_says(new.port(), 2, Duration::from_millis(100)),
    ];
    let sentinels = sentinels.map(|address| address.to_string()).join(",");
    let pool = open(&format!("redis+sentinel://{sentinels}/mymaster")).pool(0, CAP);
    pool.push(&batch("a"), &keys("k", 3)).await.unwrap();
    let depth = new.run_command(&["LLEN", "available_keys:{0}"]).unwrap();
    assert_eq!(depth, "3");
}

/// What the Sentinels name is asked for its role: a replica would answer reads and lag behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_not_taken_for_the_primary() {
    let primary = need!(Server::start());
    let follow = format!("replicaof 127.0.0.1 {}", primary.port());
    let replica = need!(Server::start_with(&[&follow]));
    let sentinel = sentinel_that_says(replica.port(), 1, Duration::ZERO);
    let pool = open(&format!("redis+sentinel://{sentinel}/mymaster")).pool(0, CAP);
    let error = pool.depth().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_server_gives_nothing_and_takes_everything() {
    let server = need!(Server::start());
    let redis = open(&server.url());
    let (pool, leases) = (redis.pool(0, CAP), redis.leases("first"));
    pool.push(&batch("a"), &keys("k", 10)).await.unwrap();
    let lease = leases.acquire("a", 60 * ttl()).await.unwrap().unwrap();
    server.run_command(&["FLUSHALL"]).unwrap();
    server.run_command(&["SCRIPT", "FLUSH"]).unwrap();
    assert_eq!(pool.pop(10).await.unwrap(), []);
    assert_eq!(pool.push(&batch("a"), &keys("k", 10)).await.unwrap(), 10);
    assert!(!leases.renew(&lease, ttl()).await.unwrap());
    let next = leases.acquire("a", ttl()).await.unwrap().unwrap();
    assert!(
        next.fencing_token > lease.fencing_token,
        "{next:?} after {lease:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_brings_back_what_was_used_since() {
    let mut server = need!(Server::start());
    let pool = open(&server.url()).pool(0, CAP);
    pool.push(&batch("a"), &keys("k", 10)).await.unwrap();
    server.run_command(&["SAVE"]).unwrap();
    let popped = pool.pop(4).await.unwrap();
    pool.push(&batch("b"), &keys("l", 5)).await.unwrap();
    server.kill().unwrap();
    server.restart().unwrap();
    let again = once_back(|| pool.pop(4)).await;
    assert_eq!(again, popped, "only the insert may decide");
    let repeated = pool.push(&batch("a"), &keys("k", 10)).await.unwrap();
    assert_eq!(repeated, 10, "the answer was in the copy");
    assert_eq!(pool.depth().await.unwrap(), 6);
    let lost = pool.push(&batch("b"), &keys("l", 5)).await.unwrap();
    assert_eq!((lost, pool.depth().await.unwrap()), (5, 11));
}

/// Too few replicas is the pool's trouble, and passes.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_may_not_write_is_away_for_now() {
    let server = need!(Server::start_with(&["min-replicas-to-write 1"]));
    let pool = open(&server.url()).pool(0, CAP);
    assert_eq!(pool.depth().await.unwrap(), 0);
    let push = pool.push(&batch("a"), &keys("k", 1)).await.unwrap_err();
    let pop = pool.pop(1).await.unwrap_err();
    for error in [push, pop] {
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("NOREPLICAS"), "{error}");
    }
    let words = ["CONFIG", "SET", "min-replicas-to-write", "0"];
    server.run_command(&words).unwrap();
    assert_eq!(once_back(|| pool.pop(1)).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_without_memory_happens_not_at_all() {
    let settings = ["maxmemory 3mb", "maxmemory-policy noeviction"];
    let server = need!(Server::start_with(&settings));
    let pool = open(&server.url()).pool(0, 1_000_000);
    let mut pushed = 0;
    let refused = loop {
        let name = format!("b{pushed}");
        match pool.push(&batch(&name), &keys(&name, 1_000)).await {
            Ok(count) => pushed += count,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind, ErrorKind::Unavailable, "{refused}");
    assert_eq!(once_back(|| pool.depth()).await, pushed as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_process() {
    hold_if_asked(ttl(), |address| open(address).leases("process")).await;
}

/// A stopped process knows nothing of its lock's end. It must hear of it with its first question.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_stopped_past_its_lease_learns_that_it_lost_it() {
    let server = need!(shared());
    let address = format!("{}?prefix={}", server.url(), unique("stopped"));
    let (mut holder, fencing_token) = Holder::start(&address, "faults::holder_process");
    let leases: Arc<dyn Leases> = open(&address).leases("second");
    tokio::time::sleep(2 * ttl()).await;
    assert_eq!(
        leases.holder("a").await.unwrap().as_deref(),
        Some("process")
    );
    assert!(
        leases.acquire("a", ttl()).await.unwrap().is_none(),
        "renewed"
    );
    holder.signal("-STOP");
    tokio::time::sleep(ttl() + ttl() / 2).await;
    let lease = leases.acquire("a", 60 * ttl()).await.unwrap().unwrap();
    assert!(
        lease.fencing_token > fencing_token,
        "{} after {fencing_token}",
        lease.fencing_token
    );
    holder.signal("-CONT");
    holder.hear("lost it");
    assert!(
        leases.renew(&lease, ttl()).await.unwrap(),
        "the second's still"
    );
}
