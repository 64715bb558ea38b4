//! The channel of invalidations while its connections are cut, held or slow, and its counter is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::{Invalidation, InvalidationFeed, Invalidations, LinkChange};
use curt_core::{Clock as _, Revision, SystemClock};
use curt_redis::{Redis, RedisSettings};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::redis::Server;
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::id;

fn open(address: &str) -> Arc<dyn Invalidations> {
    let settings = RedisSettings {
        connect_timeout: Duration::from_millis(500),
        command_timeout: Duration::from_secs(1),
    };
    Redis::open(address, settings).unwrap().invalidations()
}

/// A server, a way to it that can be broken, and a subscriber behind that way.
async fn subscribe(server: &Server) -> (Proxy, Box<dyn InvalidationFeed>) {
    let proxy = Proxy::to(SocketAddr::from(([127, 0, 0, 1], server.port()))).unwrap();
    let channel = open(&format!("redis://{}", proxy.address()));
    let feed = channel.subscribe().await.unwrap();
    (proxy, feed)
}

fn change(version: u32) -> LinkChange {
    LinkChange {
        id: id("a"),
        revision: Revision {
            generation: 1,
            version,
        },
    }
}

/// The next message or gap.
async fn next(feed: &mut Box<dyn InvalidationFeed>) -> Invalidation {
    loop {
        let told = tokio::time::timeout(time_max(Duration::from_secs(10)), feed.next()).await;
        match told.unwrap().unwrap() {
            Invalidation::Alive { .. } => {}
            told => return told,
        }
    }
}

async fn expect(feed: &mut Box<dyn InvalidationFeed>, version: u32) {
    match next(feed).await {
        Invalidation::Changed { changes, .. } => assert_eq!(*changes, [change(version)]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_cut_is_a_gap_and_then_messages_come_again() {
    let server = need!(Server::start());
    let publisher = open(&server.url());
    let (proxy, mut feed) = subscribe(&server).await;
    publisher.publish(&[change(1)]).await.unwrap();
    expect(&mut feed, 1).await;
    proxy.set(Line::Cut);
    publisher.publish(&[change(2)]).await.unwrap();
    proxy.set(Line::Sound);
    let mut told = next(&mut feed).await;
    // Before the cut had its effect, or over the new connection before the gap was told.
    if let Invalidation::Changed { changes, .. } = &told {
        assert_eq!(**changes, [change(2)]);
        told = next(&mut feed).await;
    }
    assert_eq!(told, Invalidation::Gap);
    publisher.publish(&[change(3)]).await.unwrap();
    expect(&mut feed, 3).await;
}

/// What a divided network does: nothing passes, and nobody is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_holds_everything_is_not_alive_and_then_a_gap() {
    let server = need!(Server::start());
    let publisher = open(&server.url());
    let (proxy, mut feed) = subscribe(&server).await;
    let alive = tokio::time::timeout(time_max(Duration::from_secs(5)), feed.next()).await;
    assert!(matches!(alive, Ok(Some(Invalidation::Alive { .. }))));
    proxy.set(Line::Held);
    let held_at = SystemClock.now();
    publisher.publish(&[change(1)]).await.unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        let told = tokio::time::timeout(Duration::from_millis(100), feed.next()).await;
        match told {
            // Asked before, answered before.
            Ok(Some(Invalidation::Alive { asked_at })) => assert!(asked_at <= held_at),
            Ok(told) => panic!("{told:?} through a line that holds everything"),
            Err(_) => {}
        }
    }
    proxy.set(Line::Sound);
    assert_eq!(next(&mut feed).await, Invalidation::Gap);
    publisher.publish(&[change(2)]).await.unwrap();
    expect(&mut feed, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_lost_its_counter_is_a_gap() {
    let server = need!(Server::start());
    let publisher = open(&server.url());
    let (_proxy, mut feed) = subscribe(&server).await;
    for version in 1..=3 {
        publisher.publish(&[change(version)]).await.unwrap();
        expect(&mut feed, version).await;
    }
    server.run_command(&["FLUSHALL"]).unwrap();
    assert_eq!(next(&mut feed).await, Invalidation::Gap);
    publisher.publish(&[change(4)]).await.unwrap();
    expect(&mut feed, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_engine_is_waited_for() {
    let mut server = need!(Server::start());
    let channel = open(&server.url());
    let mut feed = channel.subscribe().await.unwrap();
    server.kill().unwrap();
    assert!(channel.publish(&[change(1)]).await.is_err());
    server.restart().unwrap();
    assert_eq!(next(&mut feed).await, Invalidation::Gap);
    let begun = Instant::now();
    while channel.publish(&[change(2)]).await.is_err() {
        assert!(begun.elapsed() < time_max(Duration::from_secs(10)));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    expect(&mut feed, 2).await;
}
