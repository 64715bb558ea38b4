//! Quotas by the server's own clock, shared by several processes.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ErrorKind;
use curt_core::ports::{Bucket, QuotaRule, Quotas};
use curt_redis::{Redis, RedisSettings};
use curt_testkit::engines::redis::{Sentinels, Server, shared};
use curt_testkit::engines::unique;
use curt_testkit::need;

const BUCKET: &str = "create/user/7";
const PERIOD: Duration = Duration::from_secs(3_600);

fn open(address: &str) -> Arc<dyn Quotas> {
    let redis = Redis::open(address, RedisSettings::default()).unwrap();
    redis.quotas()
}

fn bucket(amount: u64, period: Duration) -> Bucket<'static> {
    Bucket {
        name: BUCKET,
        rule: QuotaRule { amount, period },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_a_bucket_and_never_overshoot_it() {
    let server = need!(shared());
    let address = format!("{}?prefix={}:", server.url(), unique("shared"));
    let takers = [open(&address), open(&address), open(&address)];
    let tasks = (0..90).map(|number| {
        let quotas = Arc::clone(&takers[number % takers.len()]);
        tokio::spawn(async move { quotas.take(&[bucket(40, PERIOD)], 1).await })
    });
    let mut granted = 0;
    for task in tasks.collect::<Vec<_>>() {
        granted += usize::from(task.await.unwrap().unwrap()[0].granted);
    }
    assert_eq!(granted, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_refills_by_the_servers_clock() {
    let server = need!(shared());
    let quotas = open(&format!("{}?prefix={}:", server.url(), unique("clock")));
    let bucket = bucket(5, Duration::from_millis(500));
    assert!(quotas.take(&[bucket], 5).await.unwrap()[0].granted);
    let refused = quotas.take(&[bucket], 1).await.unwrap()[0];
    assert!(!refused.granted, "{refused:?}");
    assert!(
        refused.retry_after <= Duration::from_millis(100),
        "{refused:?}"
    );
    tokio::time::sleep(refused.retry_after).await;
    assert!(quotas.take(&[bucket], 1).await.unwrap()[0].granted);
}

/// What addresses leave behind does not pile up, nor do questions about full buckets.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_run_out_and_full_ones_leave_nothing() {
    let server = need!(Server::start());
    let quotas = open(&server.url());
    let run = |words: &[&str]| server.run_command(words).unwrap();
    quotas.take(&[bucket(10, PERIOD)], 0).await.unwrap();
    assert_eq!(run(&["DBSIZE"]), "0");
    quotas.take(&[bucket(10, PERIOD)], 5).await.unwrap();
    let left = run(&["PTTL", "quota:{quota}:create/user/7"]);
    let left: u64 = left.parse().unwrap();
    let half = u64::try_from(PERIOD.as_millis()).unwrap() / 2;
    assert!((half..=half + 60_000).contains(&left), "{left}");
    quotas.give_back(&[bucket(10, PERIOD)], 5).await.unwrap();
    assert_eq!(run(&["DBSIZE"]), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_stays_taken_under_a_new_rule() {
    let server = need!(shared());
    let quotas = open(&format!("{}?prefix={}:", server.url(), unique("rule")));
    quotas.take(&[bucket(10, PERIOD)], 8).await.unwrap();
    for (amount, left) in [(20, 12), (5, 0), (100, 92)] {
        let reply = quotas.take(&[bucket(amount, PERIOD)], 0).await.unwrap()[0];
        assert_eq!(reply.remaining, left, "{amount}: {reply:?}");
        // Asking changes nothing; taking and giving back makes the rule the bucket's.
        if left > 0 {
            quotas.take(&[bucket(amount, PERIOD)], 1).await.unwrap();
            quotas
                .give_back(&[bucket(amount, PERIOD)], 1)
                .await
                .unwrap();
        } else {
            let reply = quotas.take(&[bucket(amount, PERIOD)], 1).await.unwrap()[0];
            assert!(!reply.granted, "{reply:?}");
        }
    }
}

/// Something else under our name is the operator's to mend, and no bucket is counted over it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_bucket_is_refused() {
    let server = need!(Server::start());
    let quotas = open(&server.url());
    let name = "quota:{quota}:create/user/7";
    for words in [
        &["SET", name, "something else"][..],
        &["LPUSH", name, "something else"],
    ] {
        server.run_command(&["DEL", name]).unwrap();
        server.run_command(words).unwrap();
        let error = quotas.take(&[bucket(10, PERIOD)], 1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    }
}

/// Callers wait a tenth of a second, and the connection's own time is two.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_primary_is_left_although_callers_give_up_sooner() {
    let sentinels = need!(Sentinels::start(2));
    let quotas = open(&sentinels.url());
    let buckets = [bucket(1_000, PERIOD)];
    quotas.take(&buckets, 1).await.unwrap();
    let former = sentinels.primary().unwrap();
    sentinels.servers()[former].pause().unwrap();
    sentinels.wait_for_failover(former).unwrap();
    let began = std::time::Instant::now();
    let found = loop {
        let asked = quotas.take(&buckets, 1);
        let answer = tokio::time::timeout(Duration::from_millis(100), asked).await;
        if answer.is_ok_and(|answer| answer.is_ok()) {
            break true;
        }
        if began.elapsed() > Duration::from_secs(30) {
            break false;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    sentinels.servers()[former].resume().unwrap();
    assert!(found, "the new primary was not found");
}
