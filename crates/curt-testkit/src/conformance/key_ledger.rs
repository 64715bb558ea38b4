//! Clauses of [`KeyLedger`]. They hold for every form of ledger: whether taken keys are deleted, marked or moved.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{KeyLedger, LedgerCounts};
use curt_core::{Key, UnixMillis};

use super::{race, same};
use crate::sample::{NOW, batch, key, keys, later};

type Port = Arc<dyn KeyLedger>;

/// A test for each clause. `$open` gives a fresh adapter, with what keeps it alive.
#[macro_export]
macro_rules! key_ledger_tests {
    ($open:expr) => {
        mod key_ledger {
            use super::*;
            $crate::clause_tests!(
                $open,
                key_ledger,
                starts_empty,
                inserts_what_it_does_not_know,
                knows_keys_of_open_batches,
                keys_differ_by_case_and_hold_every_symbol,
                takes_no_more_than_the_limit_k3,
                takes_what_there_is,
                a_batch_taken_again_is_the_same,
                a_closed_batch_is_gone,
                closes_several_batches_at_once,
                gives_back_only_its_own_keys,
                gives_back_once,
                lists_open_batches_oldest_first,
                recycles_what_is_not_free,
                never_frees_a_key_that_is_open,
                parallel_takes_are_disjoint_and_complete_k3,
                racing_takers_of_one_batch_get_the_same_keys,
                parallel_inserts_count_each_key_once,
                refuses_an_owner_that_was_replaced
            );
        }
    };
}

async fn expect_counts(ledger: &Port, what: &str, minted: u64, free: u64, open: u64) -> Result<()> {
    let got = ledger.counts().await?;
    let want = LedgerCounts {
        minted,
        free,
        open,
        recycled: got.recycled,
    };
    same(what, got, want)
}

fn sorted(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort();
    keys
}

pub async fn starts_empty(ledger: Port) -> Result<()> {
    same("counts", ledger.counts().await?, LedgerCounts::default())?;
    same("taken", ledger.take(&batch("b"), 10, NOW).await?, vec![])?;
    ledger.close(&[batch("absent")]).await?;
    let returned = ledger.give_back(&batch("absent"), &keys("k", 3)).await?;
    same("given back to an absent batch", returned, 0)?;
    expect_counts(&ledger, "after", 0, 0, 0).await
}

pub async fn inserts_what_it_does_not_know(ledger: Port) -> Result<()> {
    same("new", ledger.insert(&keys("k", 10)).await?, 10)?;
    same("called twice", ledger.insert(&keys("k", 10)).await?, 0)?;
    same("five more", ledger.insert(&keys("k", 15)).await?, 5)?;
    let twice = [key("same"), key("same")];
    same("one key twice", ledger.insert(&twice).await?, 1)?;
    same("no keys", ledger.insert(&[]).await?, 0)?;
    expect_counts(&ledger, "after", 16, 16, 0).await
}

pub async fn knows_keys_of_open_batches(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 4)).await?;
    ledger.take(&batch("b"), 4, NOW).await?;
    same("still known", ledger.insert(&keys("k", 4)).await?, 0)?;
    expect_counts(&ledger, "after", 4, 0, 4).await
}

pub async fn keys_differ_by_case_and_hold_every_symbol(ledger: Port) -> Result<()> {
    let mut all = vec![key("aB"), key("Ab"), key("ab"), key("AB")];
    let symbols = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain("-_.".chars());
    all.extend(symbols.map(|symbol| key(&format!("{symbol}x"))));
    all.push(key(&"z".repeat(64)));
    same("new", ledger.insert(&all).await?, all.len() as u64)?;
    let taken = ledger.take(&batch("b"), all.len(), NOW).await?;
    same("taken", sorted(taken), sorted(all))
}

pub async fn takes_no_more_than_the_limit_k3(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 100)).await?;
    for (n, limit) in [1, 7, 0, 30].into_iter().enumerate() {
        let taken = ledger.take(&batch(&format!("b{n}")), limit, NOW).await?;
        same("taken", taken.len(), limit)?;
    }
    expect_counts(&ledger, "after", 100, 62, 38).await
}

pub async fn takes_what_there_is(ledger: Port) -> Result<()> {
    let all = keys("k", 5);
    ledger.insert(&all).await?;
    let taken = ledger.take(&batch("b"), 1_000, NOW).await?;
    same("all of them", sorted(taken), all)?;
    same(
        "no more",
        ledger.take(&batch("c"), 1_000, NOW).await?,
        vec![],
    )?;
    expect_counts(&ledger, "after", 5, 0, 5).await
}

pub async fn a_batch_taken_again_is_the_same(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 20)).await?;
    let first = sorted(ledger.take(&batch("b"), 8, NOW).await?);
    for limit in [8, 1, 1_000] {
        let again = ledger.take(&batch("b"), limit, later(60)).await?;
        same("whatever the limit", sorted(again), first.clone())?;
    }
    let open = ledger.open_batches(later(60), 10).await?;
    same("open batches", open.len(), 1)?;
    same("the first instant stays", open[0].taken_at, NOW)?;
    expect_counts(&ledger, "after", 20, 12, 8).await
}

pub async fn a_closed_batch_is_gone(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 10)).await?;
    let used = ledger.take(&batch("b"), 4, NOW).await?;
    ledger.close(&[batch("b")]).await?;
    ledger.close(&[batch("b")]).await?;
    expect_counts(&ledger, "after closing twice", 10, 6, 0).await?;
    same("open", ledger.open_batches(later(1), 10).await?, vec![])?;
    let again = ledger.take(&batch("b"), 10, NOW).await?;
    same("a new batch of that name", again.len(), 6)?;
    ensure!(
        again.iter().all(|key| !used.contains(key)),
        "keys of a closed batch were handed out again"
    );
    Ok(())
}

pub async fn closes_several_batches_at_once(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 10)).await?;
    for name in ["a", "b", "c"] {
        ledger.take(&batch(name), 3, NOW).await?;
    }
    ledger
        .close(&[batch("a"), batch("absent"), batch("c")])
        .await?;
    expect_counts(&ledger, "after", 10, 1, 3).await?;
    let open = ledger.open_batches(later(1), 10).await?;
    same("open batches", open.len(), 1)?;
    same("the one that was not named", open[0].id.clone(), batch("b"))?;
    ledger.close(&[]).await?;
    expect_counts(&ledger, "after closing none", 10, 1, 3).await
}

pub async fn gives_back_only_its_own_keys(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 10)).await?;
    let own = ledger.take(&batch("b"), 4, NOW).await?;
    let other = ledger.take(&batch("c"), 4, NOW).await?;
    let unused = [
        own[0].clone(),
        own[1].clone(),
        own[1].clone(),
        other[0].clone(),
        key("unknown"),
    ];
    same(
        "went back",
        ledger.give_back(&batch("b"), &unused).await?,
        2,
    )?;
    expect_counts(&ledger, "after", 10, 4, 4).await?;
    let rest = ledger.take(&batch("d"), 10, NOW).await?;
    ensure!(
        rest.contains(&own[0]) && rest.contains(&own[1]),
        "free again"
    );
    ensure!(!rest.contains(&own[2]) && !rest.contains(&own[3]), "used");
    ensure!(!rest.contains(&other[0]), "another batch's");
    same("all that is left", rest.len(), 4)
}

pub async fn gives_back_once(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 6)).await?;
    let own = ledger.take(&batch("b"), 3, NOW).await?;
    same("went back", ledger.give_back(&batch("b"), &own).await?, 3)?;
    same(
        "called twice",
        ledger.give_back(&batch("b"), &own).await?,
        0,
    )?;
    expect_counts(&ledger, "after", 6, 6, 0).await?;
    let all = ledger.take(&batch("c"), 10, NOW).await?;
    same("each once", sorted(all), keys("k", 6))
}

pub async fn lists_open_batches_oldest_first(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 10)).await?;
    let middle = ledger.take(&batch("a"), 2, later(20)).await?;
    let old = ledger.take(&batch("b"), 3, later(10)).await?;
    ledger.take(&batch("c"), 1, later(30)).await?;
    let open = ledger.open_batches(later(20), 10).await?;
    let names: Vec<_> = open.iter().map(|open| open.id.clone()).collect();
    same("up to the instant", names, vec![batch("b"), batch("a")])?;
    same("when", open[0].taken_at, later(10))?;
    same("its keys", sorted(open[0].keys.clone()), sorted(old))?;
    same("its keys", sorted(open[1].keys.clone()), sorted(middle))?;
    let first = ledger.open_batches(later(99), 1).await?;
    same("at most the limit", first.len(), 1)?;
    same("the oldest", first[0].id.clone(), batch("b"))?;
    same("none that old", ledger.open_batches(NOW, 10).await?, vec![])?;
    let all = ledger.open_batches(UnixMillis::MAX, 10).await?;
    same("all", all.len(), 3)
}

pub async fn recycles_what_is_not_free(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 10)).await?;
    let used = ledger.take(&batch("b"), 4, NOW).await?;
    ledger.close(&[batch("b")]).await?;
    same("back", ledger.recycle(&used[..3]).await?, 3)?;
    same("free by now", ledger.recycle(&used[..3]).await?, 0)?;
    let twice = [used[3].clone(), used[3].clone()];
    same("one key twice", ledger.recycle(&twice).await?, 1)?;
    let want = LedgerCounts {
        minted: 10,
        free: 10,
        open: 0,
        recycled: 4,
    };
    same("not minted again", ledger.counts().await?, want)?;
    let all = ledger.take(&batch("c"), 100, NOW).await?;
    same("each once", sorted(all), keys("k", 10))
}

pub async fn never_frees_a_key_that_is_open(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 3)).await?;
    let open = ledger.take(&batch("b"), 3, NOW).await?;
    same("recycled", ledger.recycle(&open).await?, 0)?;
    expect_counts(&ledger, "after", 3, 0, 3).await
}

pub async fn parallel_takes_are_disjoint_and_complete_k3(ledger: Port) -> Result<()> {
    const KEYS: usize = 5_000;
    const LIMIT: usize = 70;
    let all = keys("k", KEYS);
    for part in all.chunks(1_000) {
        ledger.insert(part).await?;
    }
    let batches = race(16, |taker| {
        let ledger = Arc::clone(&ledger);
        async move {
            let mut own = Vec::new();
            for n in 0.. {
                let taken = ledger
                    .take(&batch(&format!("{taker}-{n}")), LIMIT, NOW)
                    .await?;
                if taken.is_empty() {
                    break;
                }
                own.push(taken);
            }
            Ok(own)
        }
    })
    .await?;
    let batches: Vec<Vec<Key>> = batches.into_iter().flatten().collect();
    let largest = batches.iter().map(Vec::len).max().unwrap_or(0);
    ensure!(
        largest <= LIMIT,
        "K-3: a batch of {largest} over a limit of {LIMIT}"
    );
    let taken: Vec<Key> = batches.into_iter().flatten().collect();
    same(
        "each key once",
        taken.iter().collect::<HashSet<_>>().len(),
        taken.len(),
    )?;
    same("and all of them", sorted(taken), all)?;
    expect_counts(&ledger, "after", KEYS as u64, 0, KEYS as u64).await
}

pub async fn racing_takers_of_one_batch_get_the_same_keys(ledger: Port) -> Result<()> {
    ledger.insert(&keys("k", 100)).await?;
    let taken = race(16, |_| {
        let ledger = Arc::clone(&ledger);
        async move { ledger.take(&batch("b"), 10, NOW).await }
    })
    .await?;
    let first = sorted(taken[0].clone());
    same("size", first.len(), 10)?;
    for other in taken {
        same("the same keys", sorted(other), first.clone())?;
    }
    expect_counts(&ledger, "after", 100, 90, 10).await
}

pub async fn parallel_inserts_count_each_key_once(ledger: Port) -> Result<()> {
    let added = race(8, |n| {
        let ledger = Arc::clone(&ledger);
        // Each racer shares half of its keys with the next one.
        let own = keys("k", 100 + n * 50).split_off(n * 50);
        async move { ledger.insert(&own).await }
    })
    .await?;
    same("new over all", added.iter().sum::<u64>(), 450)?;
    expect_counts(&ledger, "after", 450, 450, 0).await
}

pub async fn refuses_an_owner_that_was_replaced(ledger: Port) -> Result<()> {
    let insert = async |fencing_token, prefix: &str| {
        ledger.insert_fenced(fencing_token, &keys(prefix, 10)).await
    };
    same("the first owner", insert(7, "a").await?, Some(10))?;
    same("the same owner again", insert(7, "b").await?, Some(10))?;
    same("the next owner", insert(9, "c").await?, Some(10))?;
    same("the owner before it", insert(7, "d").await?, None)?;
    same("and again", insert(8, "d").await?, None)?;
    same("the next owner goes on", insert(9, "e").await?, Some(10))?;
    same("without a lock", ledger.insert(&keys("f", 10)).await?, 10)?;
    expect_counts(&ledger, "after", 50, 50, 0).await
}

/// `open` opens the store in `folder`; what an earlier one wrote there must be found again.
pub async fn survives_reopening_k2(folder: &Path, open: impl AsyncFn(&Path) -> Port) -> Result<()> {
    let ledger = open(folder).await;
    ledger.insert(&keys("k", 20)).await?;
    let used = ledger.take(&batch("used"), 5, NOW).await?;
    ledger.close(&[batch("used")]).await?;
    let mut left_open = ledger.take(&batch("open"), 6, later(1)).await?;
    let returned = ledger.take(&batch("returned"), 2, NOW).await?;
    ledger.give_back(&batch("returned"), &returned).await?;
    ledger.recycle(&used[..1]).await?;
    let counts = ledger.counts().await?;
    drop(ledger);

    let ledger = open(folder).await;
    same("counts", ledger.counts().await?, counts)?;
    let batches = ledger.open_batches(later(1), 10).await?;
    same("open batches", batches.len(), 1)?;
    left_open.sort();
    same("when", batches[0].taken_at, later(1))?;
    same(
        "its keys",
        sorted(batches[0].keys.clone()),
        left_open.clone(),
    )?;
    let rest = ledger.take(&batch("rest"), 100, NOW).await?;
    same("free", rest.len(), 10)?;
    ensure!(
        rest.iter()
            .all(|key| !used[1..].contains(key) && !left_open.contains(key)),
        "K-2: a key that was used or open is free"
    );
    Ok(())
}
