//! The memory adapters against the suites of their ports.

use std::sync::Arc;
use std::time::Duration;

use curt_adapters::memory::{
    MemoryAccounts, MemoryClickCounters, MemoryClickStore, MemoryClickStream, MemoryCursor,
    MemoryKeyFile, MemoryKeyLedger, MemoryKeyPool, MemoryLinkCache, MemoryLinkStore, MemoryLocks,
    MemoryQuotas,
};
use curt_core::clock::ManualClock;
use curt_testkit::conformance;
use curt_testkit::conformance::locks::Holders;
use curt_testkit::sample::NOW;

#[tokio::test(flavor = "multi_thread")]
async fn link_store() {
    conformance::link_store::suite(async || Arc::new(MemoryLinkStore::new()) as _).await;
}

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
async fn locks() {
    let clock = Arc::new(ManualClock::at(NOW));
    let make = async || {
        let locks = MemoryLocks::new(clock.clone());
        Holders {
            first: Arc::new(locks.for_holder("first")),
            second: Arc::new(locks.for_holder("second")),
        }
    };
    conformance::locks::suite(make, async |by| clock.advance(by)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn click_stream() {
    for partitions in [1, 3] {
        let make = async || Arc::new(MemoryClickStream::new(partitions, 1_000)) as _;
        conformance::click_stream::suite(make).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn click_counters() {
    conformance::click_counters::suite(async || Arc::new(MemoryClickCounters::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn click_store() {
    conformance::click_store::suite(async || Arc::new(MemoryClickStore::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts() {
    conformance::accounts::suite(async || Arc::new(MemoryAccounts::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas() {
    conformance::quotas::suite(async || Arc::new(MemoryQuotas::new()) as _).await;
}
