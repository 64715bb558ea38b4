//! The Redis adapter against the suites of its ports: plain, over TLS with an account, and through Sentinels.

use std::sync::Arc;
use std::time::Duration;

use curt_core::ErrorKind;
use curt_core::clock::ManualClock;
use curt_core::ports::{Counted, CounterAddition, KeyPool, StreamId, StreamPartition};
use curt_redis::{Redis, RedisSettings};
use curt_testkit::conformance::caches::link_cache::TimedCache;
use curt_testkit::conformance::heartbeats::Lookers;
use curt_testkit::conformance::key_pool::CAP;
use curt_testkit::conformance::leases::Holders;
use curt_testkit::conformance::quotas::Clocked;
use curt_testkit::conformance::{self, TestTime};
use curt_testkit::engines::redis::{Sentinels, Server, shared, shared_secured, shared_sentinels};
use curt_testkit::engines::unique;
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch, keys};

/// The machine may be busy, and shaking hands over TLS takes its time then.
const TIMEOUT: Duration = Duration::from_secs(20);

fn open(address: &str) -> Arc<Redis> {
    let settings = RedisSettings {
        connect_timeout: TIMEOUT,
        command_timeout: TIMEOUT,
    };
    Redis::open(address, settings).unwrap()
}

/// The address with a prefix that nobody else uses, after the parameters that it has.
fn apart(address: &str) -> String {
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}prefix={}:", unique("test"))
}

/// A pool under a prefix of its own.
macro_rules! fresh_pool {
    ($server:expr, $url:expr) => {{
        let server = need!($server);
        let pool = open(&apart(&$url(&server))).pool(0, CAP);
        (server, pool)
    }};
}

/// Two holders of leases under a prefix of their own.
macro_rules! fresh_holders {
    ($server:expr, $url:expr) => {{
        let server = need!($server);
        let address = apart(&$url(&server));
        let holders = Holders {
            first: open(&address).leases("first"),
            second: open(&address).leases("second"),
            time: TestTime::Real,
        };
        (server, holders)
    }};
}

/// A channel under a prefix of its own.
macro_rules! fresh_channel {
    ($server:expr, $url:expr) => {{
        let server = need!($server);
        let channel = open(&apart(&$url(&server))).invalidations();
        (server, channel)
    }};
}

curt_testkit::key_pool_tests!(fresh_pool!(shared(), |server: &Server| server.url()));
curt_testkit::leases_tests!(fresh_holders!(shared(), |server: &Server| server.url()));
curt_testkit::heartbeats_tests!({
    let server = need!(shared());
    let address = apart(&server.url());
    let lookers = Lookers {
        first: open(&address).heartbeats(),
        second: open(&address).heartbeats(),
    };
    (server, lookers)
});

/// Quotas by a clock that the clauses set.
macro_rules! fresh_quotas {
    ($server:expr, $url:expr) => {{
        let server = need!($server);
        let clock = Arc::new(ManualClock::at(NOW));
        let quotas = open(&apart(&$url(&server))).quotas_by(clock.clone());
        (server, Clocked { quotas, clock })
    }};
}

curt_testkit::quotas_tests!(fresh_quotas!(shared(), |server: &Server| server.url()));
curt_testkit::invalidation_tests!(fresh_channel!(shared(), |server: &Server| server.url()));
curt_testkit::link_cache_tests!({
    let server = need!(shared());
    let cache = open(&apart(&server.url())).link_cache();
    (server, TimedCache { cache, clock: None })
});

/// Windows of clicks under a prefix of their own.
macro_rules! fresh_counters {
    ($server:expr, $url:expr) => {{
        let server = need!($server);
        let counters = open(&apart(&$url(&server))).click_counters();
        (server, counters)
    }};
}

curt_testkit::click_counter_tests!(fresh_counters!(shared(), |server: &Server| server.url()));

mod over_tls_with_an_account {
    use super::*;
    curt_testkit::key_pool_tests!(fresh_pool!(shared_secured(), secured_url));
    curt_testkit::leases_tests!(fresh_holders!(shared_secured(), secured_url));
    curt_testkit::invalidation_tests!(fresh_channel!(shared_secured(), secured_url));
}

mod through_sentinels {
    use super::*;
    curt_testkit::key_pool_tests!(fresh_pool!(shared_sentinels(), Sentinels::url));
    curt_testkit::leases_tests!(fresh_holders!(shared_sentinels(), Sentinels::url));
    curt_testkit::quotas_tests!(fresh_quotas!(shared_sentinels(), Sentinels::url));
    curt_testkit::invalidation_tests!(fresh_channel!(shared_sentinels(), Sentinels::url));
    curt_testkit::click_counter_tests!(fresh_counters!(shared_sentinels(), Sentinels::url));
}

fn secured_url(server: &Server) -> String {
    let authority = server.authority().unwrap().display();
    format!("{}?ca={authority}", server.url())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_falls_silent_is_forgotten() {
    let server = need!(shared());
    let heartbeats = open(&apart(&server.url())).heartbeats();
    let timed = (heartbeats, TestTime::Real);
    let clause = conformance::heartbeats::who_falls_silent_is_forgotten(timed);
    conformance::run_clause(clause).await;
}

/// A setting that cannot work is not worth trying again, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_account_or_name_is_the_operators_to_mend() {
    let secured = need!(Server::start_secured());
    let sentinels = need!(Sentinels::start(1));
    let url = secured_url(&secured);
    let wrong_name = sentinels.url().replace("/mymaster", "/nobody");
    for wrong in [
        url.replace("only-for-tests", "wrong"),
        url.replace("curt:only-for-tests@", ""),
        wrong_name,
    ] {
        let error = open(&wrong).ping().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}: {error}");
        assert!(!error.to_string().contains("only-for-tests"), "{error}");
    }
    let untrusted = open(&secured.url()).ping().await.unwrap_err();
    assert_eq!(untrusted.kind, ErrorKind::Unavailable, "{untrusted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_prefixes_and_shards_are_apart() {
    let server = need!(shared());
    let prefix = unique("apart");
    let address =
        |database: u8, more: &str| format!("{}/{database}?prefix={prefix}{more}:", server.url());
    let base = open(&address(0, ""));
    let pools: [Arc<dyn KeyPool>; 4] = [
        base.pool(0, 100),
        base.pool(1, 100),
        open(&address(1, "")).pool(0, 100),
        open(&address(0, "x")).pool(0, 100),
    ];
    for (count, pool) in (1..).zip(&pools) {
        let pushed = pool.push(&batch("same"), &keys("k", count)).await;
        assert_eq!(pushed.unwrap(), count);
    }
    for (count, pool) in (1..).zip(&pools) {
        assert_eq!(pool.depth().await.unwrap(), count);
    }
}

/// The list has the name that the documents give it, and what remembers batches does not pile up.
#[tokio::test(flavor = "multi_thread")]
async fn names_in_the_database_are_documented_and_markers_run_out() {
    let server = need!(Server::start());
    let pool = open(&server.url()).pool(3, 10_000);
    let pushed = pool.push(&batch("f00d.3.1"), &keys("k", 5_000)).await;
    assert_eq!(pushed.unwrap(), 5_000, "more than one call of Lua takes");
    let run = |words: &[&str]| server.run_command(words).unwrap();
    assert_eq!(run(&["LLEN", "available_keys:{3}"]), "5000");
    let left = run(&["PTTL", "available_keys:{3}:batch:f00d.3.1"]);
    let left: i64 = left.parse().unwrap();
    assert!((1..=24 * 3_600 * 1_000).contains(&left), "{left}");
}

/// A window is one value, so that it cannot be lost in part, and goes by itself when nobody asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_clicks_is_one_value_that_runs_out() {
    let server = need!(Server::start());
    let counters = open(&server.url()).click_counters();
    let partition = StreamPartition {
        stream: StreamId(0xf00d),
        number: 3,
    };
    let counts = (0..5_000_u32).map(|number| Counted {
        name: number.to_be_bytes().into(),
        count: 1,
    });
    let addition = CounterAddition {
        next: 10,
        counts: counts.collect(),
        piece: vec![1, 2, 3],
        ..CounterAddition::default()
    };
    assert!(counters.add(partition, addition).await.unwrap().is_some());
    let run = |words: &[&str]| server.run_command(words).unwrap();
    let name = "clicks:{000000000000f00d:3}";
    assert_eq!(
        (run(&["DBSIZE"]), run(&["TYPE", name])),
        ("1".into(), "hash".into())
    );
    let left: i64 = run(&["PTTL", name]).parse().unwrap();
    assert!((1..=24 * 3_600 * 1_000).contains(&left), "{left}");
    run(&["HSET", name, "foreign", "1"]);
    let error = counters.window(partition).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    assert_eq!(counters.window(partition).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_key_is_left_out() {
    let server = need!(Server::start());
    let pool = open(&server.url()).pool(0, 100);
    pool.push(&batch("a"), &keys("k", 2)).await.unwrap();
    let foreign = "return redis.call('RPUSH', KEYS[1], 'not a key', '', '\\255')";
    let words = ["EVAL", foreign, "1", "available_keys:{0}"];
    server.run_command(&words).unwrap();
    pool.push(&batch("b"), &keys("l", 1)).await.unwrap();
    let want = [keys("k", 2), keys("l", 1)].concat();
    assert_eq!(pool.pop(100).await.unwrap(), want);
}
