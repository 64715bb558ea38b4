//! The memory adapters against the suites of their ports.

use std::sync::Arc;
use std::time::Duration;

use curt_core::clock::ManualClock;
use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{
    Bucket, CachedLink, LinkCache, LinkIndex, ListOrder, ListQuery, QuotaReply, QuotaRule, Quotas,
};
use curt_memory::{
    MemoryAccounts, MemoryCursor, MemoryHeartbeats, MemoryKeyFile, MemoryKeyLedger, MemoryKeyPool,
    MemoryLeases, MemoryLinkCache, MemoryLinkStore, MemoryQuotas,
};
use curt_testkit::conformance;
use curt_testkit::conformance::heartbeats::Lookers;
use curt_testkit::conformance::leases::Holders;
use curt_testkit::sample::{NOW, SampleWrites, id, link};

curt_testkit::link_tests!(((), Arc::new(MemoryLinkStore::new())));
curt_testkit::seeded_link_tests!(((), Arc::new(MemoryLinkStore::new())));

#[tokio::test(flavor = "multi_thread")]
async fn link_cache() {
    let clock = Arc::new(ManualClock::at(NOW));
    let make = async || Arc::new(MemoryLinkCache::new(100, clock.clone())) as _;
    let pass = async |by: Duration| clock.advance(by);
    conformance::link_cache::suite(make, pass).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_ledger() {
    conformance::key_ledger::suite(async || Arc::new(MemoryKeyLedger::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_pool() {
    conformance::key_pool::suite(async |cap| Arc::new(MemoryKeyPool::new(cap)) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_file() {
    conformance::key_file::suite(async || Arc::new(MemoryKeyFile::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cursor() {
    conformance::cursor::suite(async || Arc::new(MemoryCursor::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats() {
    let clock = Arc::new(ManualClock::at(NOW));
    let make = async || {
        let heartbeats = Arc::new(MemoryHeartbeats::new(clock.clone()));
        Lookers {
            first: heartbeats.clone(),
            second: heartbeats,
        }
    };
    conformance::heartbeats::suite(make).await;
    let heartbeats = Arc::new(MemoryHeartbeats::new(clock.clone()));
    let pass = async |by| clock.advance(by);
    conformance::heartbeats::who_falls_silent_is_forgotten(heartbeats, pass).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases() {
    let clock = Arc::new(ManualClock::at(NOW));
    let make = async || {
        let leases = MemoryLeases::new(clock.clone());
        Holders {
            first: Arc::new(leases.for_holder("first")),
            second: Arc::new(leases.for_holder("second")),
        }
    };
    conformance::leases::suite(make, async |by| clock.advance(by)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts() {
    conformance::accounts::suite(async || Arc::new(MemoryAccounts::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas() {
    let make = async || {
        let clock = Arc::new(ManualClock::at(NOW));
        let quotas = Arc::new(MemoryQuotas::new(clock.clone()));
        conformance::quotas::Clocked { quotas, clock }
    };
    conformance::quotas::suite(make).await;
}

/// A search that finds little reads a bounded number of rows, and pages on.
#[tokio::test]
async fn a_page_reads_a_bounded_number_of_rows() {
    let store = MemoryLinkStore::new();
    let links = (0..PAGE_ROWS_SCANNED_MAX + 10).map(|n| link(&format!("k{n:06}")));
    store.insert(links.collect()).await.unwrap();
    let mut query = ListQuery {
        search: Some(format!("k{:06}", PAGE_ROWS_SCANNED_MAX + 9).into()),
        order: ListOrder::KeyRising,
        limit: 10,
        ..ListQuery::default()
    };
    let first = store.list(&query).await.unwrap();
    assert!(first.links.is_empty());
    query.cursor = first.next;
    assert!(query.cursor.is_some(), "the first page is not the last");
    let second = store.list(&query).await.unwrap();
    assert_eq!(second.links.len(), 1);
    assert_eq!(second.next, None);
}

#[tokio::test]
async fn a_cache_keeps_no_more_than_its_cap() {
    let clock = Arc::new(ManualClock::at(NOW));
    let cache = MemoryLinkCache::new(10, clock);
    for n in 0..100 {
        let ttl = Duration::from_secs(100 + n);
        let id = id(&format!("k{n}"));
        cache.set(&id, CachedLink::Absent, ttl).await.unwrap();
    }
    let mut kept = 0;
    for n in 0..100 {
        let id = id(&format!("k{n}"));
        kept += usize::from(cache.get(&id).await.unwrap().is_some());
    }
    assert_eq!(kept, 10);
}

/// Takes from one bucket at [`NOW`].
async fn take(quotas: &MemoryQuotas, name: &str, rule: QuotaRule, amount: u64) -> QuotaReply {
    let bucket = Bucket { name, rule };
    quotas.take(&[bucket], amount).await.unwrap()[0]
}

#[tokio::test]
async fn quotas_keep_what_was_taken_when_the_rule_changes() {
    let quotas = MemoryQuotas::new(Arc::new(ManualClock::at(NOW)));
    let rule = |amount, seconds| QuotaRule {
        amount,
        period: Duration::from_secs(seconds),
    };
    assert!(take(&quotas, "a", rule(10, 1), 6).await.granted);
    assert_eq!(take(&quotas, "a", rule(100, 60), 0).await.remaining, 94);
    assert_eq!(take(&quotas, "a", rule(5, 60), 0).await.remaining, 0);
}

/// Full buckets say nothing and are forgotten; the others are not.
#[tokio::test]
async fn quotas_forget_full_buckets_only() {
    let quotas = MemoryQuotas::new(Arc::new(ManualClock::at(NOW)));
    let rule = QuotaRule {
        amount: 10,
        period: Duration::from_secs(1),
    };
    take(&quotas, "spent", rule, 10).await;
    for n in 0..10_000 {
        take(&quotas, &format!("asked {n}"), rule, 0).await;
    }
    assert!(quotas.bucket_count() < 2_000, "{}", quotas.bucket_count());
    assert!(!take(&quotas, "spent", rule, 1).await.granted);
}
