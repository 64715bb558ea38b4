//! From a file to DynamoDB and back to a file, killed on the way.

use std::sync::Arc;
use std::time::Instant;

use curt_core::ports::ClickDatabase;
use curt_dynamodb::{DynamoDb, DynamoDbSettings};
use curt_memory::MemoryClickStore;
use curt_testkit::engines::{dynamodb, unique};
use curt_testkit::need;
use tokio::runtime::Runtime;

use super::chain::{assert_same_accounts, fill_stores, go_on_with_clicks, tell};
use super::{Way, app, assert_same_links, copy_over_kills, fill, noted_in, sqlite};
use crate::alone::Company;
use crate::length::length;

#[test]
fn everything_copied_to_dynamodb_and_back_is_the_same_k1_k2_l3_c1() {
    let _company = Company::join();
    let url = need!(dynamodb::shared()).url(&unique("copy"));
    // The machine may be busy.
    let app = app()
        .setting("dynamodb.connect_timeout", "30s")
        .setting("dynamodb.background_timeout", "60s")
        .setting("dynamodb.call_timeout", "30s");
    let path = |name: &str| app.folder().join(name);
    let (first, last) = (path("first/curt.db"), path("last/curt.db"));
    let count = length(600, 100_000);
    fill(&first, count);
    let reference: Arc<dyn ClickDatabase> = Arc::new(MemoryClickStore::new());
    fill_stores(&first, &reference);
    let (first_url, last_url) = (sqlite(&first), sqlite(&last));
    let runtime = Runtime::new().unwrap();
    let settings = DynamoDbSettings {
        connect_timeout: super::WAIT_MAX,
        call_timeout: super::WAIT_MAX,
        ..DynamoDbSettings::default()
    };
    let notes = DynamoDb::open(&url, &settings).unwrap().notes();
    let noted = || {
        let note = runtime.block_on(notes.note("copy")).ok()?;
        Some(note.text).filter(|text| !text.is_empty())
    };
    let begun = Instant::now();
    let there = Way::new(&[&first_url], &[&url]);
    let there = copy_over_kills(&app, there, count, 1, noted);
    tell("SQLite to DynamoDB", begun, &there);
    let begun = Instant::now();
    let back = Way::new(&[&url], &[&last_url]);
    let back = copy_over_kills(&app, back, count, 1, || noted_in(&last));
    tell("DynamoDB to SQLite", begun, &back);
    for part in ["links", "accounts", "clicks"] {
        assert!(there[part]["checksum"].is_string(), "{there}");
        assert_eq!(there[part]["checksum"], back[part]["checksum"], "{part}");
    }
    assert_same_links(&first, &last);
    assert_same_accounts(&first, &last);
    go_on_with_clicks(&last, &reference);
}
