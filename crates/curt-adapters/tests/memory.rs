//! The memory adapters against the suites of their ports.

use std::sync::Arc;

use curt_adapters::memory::{MemoryAccounts, MemoryCursor, MemoryKeyLedger, MemoryLinkStore};
use curt_testkit::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn link_store() {
    conformance::link_store::suite(async || Arc::new(MemoryLinkStore::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_ledger() {
    conformance::key_ledger::suite(async || Arc::new(MemoryKeyLedger::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cursor() {
    conformance::cursor::suite(async || Arc::new(MemoryCursor::new()) as _).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts() {
    conformance::accounts::suite(async || Arc::new(MemoryAccounts::new()) as _).await;
}
