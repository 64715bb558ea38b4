//! A2: the primary dies, its standby is promoted, and everybody goes on by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use curt_core::ports::LedgerForm;
use curt_testkit::engines::postgres::Pair;
use curt_testkit::need;
use curt_testkit::sample::{batch, keys};
use tokio::time::Instant;

use crate::ledger::world::{
    Ledger, Taken, assert_complete, drain, mint, open, take_until_answered,
};

const LIMIT: usize = 50;

/// Mints under load until told to stop; an insert that fails is repeated, which adds only what is not there.
async fn keep_minting(ledger: Ledger, stop: Arc<AtomicBool>) -> u64 {
    let mut total = 0;
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let part = keys(&format!("m{round}-"), 200);
        while let Err(error) = ledger.insert(&part).await {
            assert!(error.is_transient(), "{error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        total += part.len() as u64;
    }
    total
}

/// With a synchronous standby nothing that was answered is lost: no key twice, none missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_is_found_and_no_key_is_taken_twice_k2() {
    let mut pair = need!(Pair::start());
    let synchronous = "alter system set synchronous_standby_names = '*'";
    pair.primary().sql(synchronous).unwrap();
    pair.primary().sql("select pg_reload_conf()").unwrap();
    let ledger = open(&pair.url("postgres")).ledger(LedgerForm::Delete);
    mint(&ledger, 20_000).await;

    let stop = Arc::new(AtomicBool::new(false));
    let minting = tokio::spawn(keep_minting(Arc::clone(&ledger), Arc::clone(&stop)));
    let draining = {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move { drain_for(&ledger, Duration::from_secs(4)).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pair = tokio::task::spawn_blocking(move || {
        pair.kill_primary().unwrap();
        pair.promote().unwrap();
        pair
    })
    .await
    .unwrap();
    let mut taken = draining.await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let minted = minting.await.unwrap() + 20_000;
    taken.extend(drain(&ledger, 4, LIMIT).await);
    assert_complete(&taken, usize::try_from(minted).unwrap(), LIMIT);
    let counts = ledger.counts().await.unwrap();
    assert_eq!(
        (counts.minted, counts.free, counts.open),
        (minted, 0, minted)
    );
    drop(pair);
}

/// Takes without a pause for a while, under names of its own.
async fn drain_for(ledger: &Ledger, time: Duration) -> Taken {
    let until = Instant::now() + time;
    let mut taken = Taken::new();
    for n in 0.. {
        if Instant::now() > until {
            break;
        }
        let name = batch(&format!("during-{n}"));
        let keys = take_until_answered(ledger, &name, LIMIT).await;
        taken.insert(name, keys);
    }
    taken
}
