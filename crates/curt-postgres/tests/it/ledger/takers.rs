//! A3, D1: many takers share a ledger, beside those who mint into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use curt_core::ports::LedgerForm;
use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::length::{length, time_max};
use curt_testkit::need;
use curt_testkit::sample::{NOW, batch, keys};
use tokio::task::JoinSet;

use crate::ledger::world::{
    FORMS, Ledger, Taken, assert_complete, connect, drain, mint, open, open_wide,
    take_until_answered,
};

const LIMIT: usize = 70;

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_takers_share_the_keys_k3() {
    let server = need!(shared());
    let count = length(20_000, 500_000);
    for form in FORMS {
        let database = server.database("takers").unwrap();
        let ledger = open_wide(&database.url(), 64).ledger(form);
        mint(&ledger, count).await;
        let taken = drain(&ledger, 64, LIMIT).await;
        assert_complete(&taken, count, LIMIT);
        let counts = ledger.counts().await.unwrap();
        assert_eq!((counts.free, counts.open), (0, count as u64), "{form:?}");
    }
}

/// Mints `rounds` times, and each key twice: the second time it may be free, open or used.
async fn mint_for(ledger: Ledger, minter: usize, rounds: usize) -> u64 {
    let mut new = 0;
    for round in 0..rounds {
        let part = keys(&format!("{minter}-{round}-"), 40);
        new += ledger.insert(&part).await.unwrap();
        // Ledgers that forget used keys may take them again.
        assert!(ledger.insert(&part[..1]).await.unwrap() <= 1);
    }
    new
}

async fn take_while(ledger: Ledger, taker: usize, minting: Arc<AtomicBool>) -> Taken {
    let mut own = Taken::new();
    for n in 0.. {
        let goes_on = minting.load(Ordering::Relaxed);
        let name = batch(&format!("while-{taker}-{n}"));
        let taken = take_until_answered(&ledger, &name, LIMIT).await;
        match (taken.is_empty(), goes_on) {
            (true, false) => break,
            (true, true) => tokio::time::sleep(Duration::from_millis(1)).await,
            (false, _) => drop(own.insert(name, taken)),
        }
    }
    own
}

/// Rows that are committed late must not be passed over, and no key may be lost between the two.
#[tokio::test(flavor = "multi_thread")]
async fn minting_and_taking_at_once_loses_nothing_k2() {
    let server = need!(shared());
    for form in FORMS {
        let database = server.database("both").unwrap();
        let ledger = open_wide(&database.url(), 16).ledger(form);
        let minting = Arc::new(AtomicBool::new(true));
        let mut takers = JoinSet::new();
        for taker in 0..4 {
            takers.spawn(take_while(Arc::clone(&ledger), taker, Arc::clone(&minting)));
        }
        let mut minters = JoinSet::new();
        for minter in 0..8 {
            minters.spawn(mint_for(Arc::clone(&ledger), minter, length(50, 1_000)));
        }
        let new: u64 = minters.join_all().await.into_iter().sum();
        minting.store(false, Ordering::Relaxed);
        let taken: Taken = takers.join_all().await.into_iter().flatten().collect();
        assert_complete(&taken, usize::try_from(new).unwrap(), LIMIT);
    }
}

/// Holds the first keys as a taker does that is in the middle of its transaction.
async fn hold_first(database: &Database, count: usize) -> tokio_postgres::Client {
    let client = connect(database).await;
    client.batch_execute("begin").await.unwrap();
    let lock = format!("select key from keys order by id limit {count} for update");
    assert_eq!(client.query(&lock, &[]).await.unwrap().len(), count);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taker_does_not_wait_for_another() {
    let server = need!(shared());
    for form in [
        LedgerForm::Delete,
        LedgerForm::Status,
        LedgerForm::UsedTable,
    ] {
        let database = server.database("wait").unwrap();
        let ledger = open(&database.url()).ledger(form);
        mint(&ledger, 30).await;
        let _other = hold_first(&database, 10).await;
        let started = Instant::now();
        let taken = ledger.take(&batch("b"), 30, NOW).await.unwrap();
        assert_eq!(taken.len(), 20, "{form:?}: the others are held");
        assert!(
            started.elapsed() < time_max(Duration::from_secs(2)),
            "{form:?}"
        );
    }
}

/// D1 as documented: two that select before either marks get the same key.
#[tokio::test(flavor = "multi_thread")]
async fn selecting_and_then_marking_hands_a_key_out_twice() {
    const SELECT: &str = "select key from keys where status = 0 order by id limit 1";
    let server = need!(shared());
    let database = server.database("race").unwrap();
    mint(&open(&database.url()).ledger(LedgerForm::Status), 30).await;
    let (one, other) = (connect(&database).await, connect(&database).await);
    let mut handed_out = Vec::new();
    for client in [&one, &other] {
        let row = client.query_one(SELECT, &[]).await.unwrap();
        handed_out.push(row.get::<_, String>(0));
    }
    for (client, key) in [&one, &other].into_iter().zip(&handed_out) {
        let mark = "update keys set status = 1 where key = $1";
        client.execute(mark, &[key]).await.unwrap();
    }
    assert_eq!(handed_out[0], handed_out[1]);
}
