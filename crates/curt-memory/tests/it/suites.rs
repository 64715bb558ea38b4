//! The memory adapters against the suites of their ports.

use std::sync::Arc;
use std::time::Duration;

use curt_core::clock::ManualClock;
use curt_core::limits::PAGE_ROWS_SCANNED_MAX;
use curt_core::ports::{
    Bucket, CachedLink, LinkCache, LinkIndex, ListOrder, ListQuery, QuotaReply, QuotaRule, Quotas,
};
use curt_memory::{
    MemoryAccounts, MemoryCursor, MemoryHeartbeats, MemoryInvalidations, MemoryKeyFile,
    MemoryKeyLedger, MemoryKeyPool, MemoryLeases, MemoryLinkCache, MemoryLinkStore, MemoryQuotas,
    MemoryShardMaps,
};
use curt_testkit::conformance::caches::link_cache::TimedCache;
use curt_testkit::conformance::heartbeats::Lookers;
use curt_testkit::conformance::key_pool::CAP;
use curt_testkit::conformance::leases::Holders;
use curt_testkit::conformance::quotas::Clocked;
use curt_testkit::conformance::transfer::{LinkTransferPorts, NodeTransferPorts};
use curt_testkit::conformance::{self, TestTime};
use curt_testkit::sample::{NOW, SampleWrites, id, link};

curt_testkit::link_tests!(((), Arc::new(MemoryLinkStore::new())));
curt_testkit::seeded_link_tests!(((), Arc::new(MemoryLinkStore::new())));
curt_testkit::link_shard_tests!(((), Arc::new(MemoryLinkStore::new())));

fn transfer_ports() -> (LinkTransferPorts, Arc<MemoryLinkStore>) {
    let store = Arc::new(MemoryLinkStore::new());
    let ports = LinkTransferPorts {
        links: store.clone(),
        transfer: store.clone(),
        seeded: Some(store.clone()),
    };
    (ports, store)
}

curt_testkit::link_transfer_tests!(((), transfer_ports().0));
curt_testkit::followed_link_tests!(((), transfer_ports().0));
curt_testkit::node_transfer_tests!({
    let (ports, shards) = transfer_ports();
    ((), NodeTransferPorts { ports, shards })
});
curt_testkit::shard_map_tests!(((), Arc::new(MemoryShardMaps::new())));

curt_testkit::link_cache_tests!({
    let clock = Arc::new(ManualClock::at(NOW));
    let cache = Arc::new(MemoryLinkCache::new(100, clock.clone()));
    let clock = Some(clock);
    ((), TimedCache { cache, clock })
});

curt_testkit::invalidation_tests!(((), Arc::new(MemoryInvalidations::new(64))));

/// A clock that the tests move.
fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(NOW))
}

fn fresh_lookers() -> ((), Lookers) {
    let first = Arc::new(MemoryHeartbeats::new(clock()));
    let second = first.clone();
    ((), Lookers { first, second })
}

fn fresh_holders() -> ((), Holders) {
    let clock = clock();
    let leases = MemoryLeases::new(clock.clone());
    let holders = Holders {
        first: Arc::new(leases.for_holder("first")),
        second: Arc::new(leases.for_holder("second")),
        time: TestTime::Manual(clock),
    };
    ((), holders)
}

fn fresh_quotas() -> ((), Clocked) {
    let clock = clock();
    let quotas = Arc::new(MemoryQuotas::new(clock.clone()));
    ((), Clocked { quotas, clock })
}

curt_testkit::key_ledger_tests!(((), Arc::new(MemoryKeyLedger::new())));
curt_testkit::key_pool_tests!(((), Arc::new(MemoryKeyPool::new(CAP))));
curt_testkit::key_file_tests!(((), Arc::new(MemoryKeyFile::new())));
curt_testkit::cursor_tests!(((), Arc::new(MemoryCursor::new())));
curt_testkit::heartbeats_tests!(fresh_lookers());
curt_testkit::leases_tests!(fresh_holders());
curt_testkit::accounts_tests!(((), Arc::new(MemoryAccounts::new())));
curt_testkit::quotas_tests!(fresh_quotas());

#[tokio::test(flavor = "multi_thread")]
async fn who_falls_silent_is_forgotten() {
    let clock = clock();
    let heartbeats = Arc::new(MemoryHeartbeats::new(clock.clone()));
    let time = TestTime::Manual(clock);
    let clause = conformance::heartbeats::who_falls_silent_is_forgotten((heartbeats, time));
    conformance::run_clause(clause).await;
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
        let entry = CachedLink::Absent(NOW);
        cache.set_if_newer(&id, entry, ttl).await.unwrap();
    }
    let ids: Vec<_> = (0..100).map(|n| id(&format!("k{n}"))).collect();
    let kept = cache.get_many(&ids).await.unwrap();
    assert_eq!(kept.iter().flatten().count(), 10);
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
