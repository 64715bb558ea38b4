//! Many servers that count into the same rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use curt_core::ports::ClickWindow;
use curt_core::{ClickSubject, SubjectDay};
use curt_testkit::engines::postgres::{Server, shared};
use curt_testkit::length::length;
use curt_testkit::need;
use curt_testkit::sample::{NOW, OWNER};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use crate::clicks::world::{
    Clicks, apply_surely, click, counted, link, one_click, open, stream, total,
};

const SERVERS: u64 = 8;
const LINKS: usize = 40;

fn key(number: usize) -> String {
    format!("k{number:03}")
}

/// Days of most links and of what they add up to, in any order.
fn some_days(random: &mut StdRng) -> Vec<SubjectDay> {
    let mut days: Vec<SubjectDay> = (0..LINKS)
        .filter(|_| random.random_bool(0.8))
        .map(|number| counted(link(&key(number))))
        .collect();
    days.push(counted(ClickSubject::Everything));
    days.push(counted(ClickSubject::Owner(OWNER)));
    days.shuffle(random);
    days
}

/// Every flush is applied at the first try: nobody waits for somebody who waits for him.
#[tokio::test(flavor = "multi_thread")]
async fn servers_never_wait_in_a_circle_and_everything_counts_c1() {
    let server = need!(shared());
    let database = server.database("crowd").unwrap();
    let flushes = length(30, 500);
    let mut work = JoinSet::new();
    for number in 0..SERVERS {
        let clicks = open(&database.url());
        work.spawn(async move {
            let mut random = StdRng::seed_from_u64(number);
            let mut days_flushed = 0;
            for from in 0..flushes {
                let flush = ClickWindow {
                    partition: stream(number),
                    from,
                    to: from + 1,
                    days: some_days(&mut random).into(),
                    blocks: Vec::new(),
                }
                .with_clicks(&[click(&key(0), NOW)]);
                days_flushed += flush.days.len() as u64;
                assert!(clicks.apply(flush).await.unwrap());
            }
            days_flushed
        });
    }
    let flushed: u64 = work.join_all().await.into_iter().sum();
    let clicks = open(&database.url());
    let mut counted = 0;
    for number in 0..LINKS {
        counted += total(&clicks, &link(&key(number))).await;
    }
    for subject in [ClickSubject::Everything, ClickSubject::Owner(OWNER)] {
        let of_all = total(&clicks, &subject).await;
        assert_eq!(of_all, SERVERS * flushes, "{subject:?}");
        counted += of_all;
    }
    assert_eq!(counted, flushed);
    let clicks = database
        .sql("select sum(clicks) from click_blocks")
        .unwrap();
    assert_eq!(clicks, (SERVERS * flushes).to_string());
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(database.sql(deadlocks).unwrap(), "0");
}

/// `kill -9` of one of the engine's processes makes it end all of them and recover from its log.
#[tokio::test(flavor = "multi_thread")]
async fn killed_backends_lose_and_double_nothing_c1() {
    let server = need!(Server::start());
    server.sql("create database killed").unwrap();
    let killing = Arc::new(AtomicBool::new(true));
    let mut work = JoinSet::new();
    for number in 0..SERVERS {
        let clicks = open(&server.url("killed"));
        let killing = Arc::clone(&killing);
        work.spawn(async move {
            let mut flushed = 0;
            while killing.load(Relaxed) || flushed < length(150, 1_500) {
                apply_surely(&clicks, one_click(number, flushed)).await;
                flushed += 1;
            }
            (number, flushed)
        });
    }
    let kills = server.kill_busy_backends("killed", length(3, 20));
    killing.store(false, Relaxed);
    kills.unwrap();
    let flushed = work.join_all().await;
    let total_flushed: u64 = flushed.iter().map(|(_, flushed)| flushed).sum();
    let clicks: Clicks = open(&server.url("killed"));
    for subject in [link("a"), ClickSubject::Everything] {
        assert_eq!(
            total(&clicks, &subject).await,
            total_flushed,
            "C-1: {subject:?}"
        );
    }
    for (number, flushed) in flushed {
        let position = clicks.offset(stream(number)).await.unwrap();
        assert_eq!(position, flushed);
    }
}
