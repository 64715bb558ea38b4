//! Clauses of [`KeyPool`].

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::Key;
use curt_core::ports::KeyPool;

use super::{RACERS, race, same};
use crate::sample::{batch, key, keys};

type Port = Arc<dyn KeyPool>;

/// A test for each clause. `$open` gives a fresh adapter that takes [`CAP`](crate::conformance::key_pool::CAP)
/// keys, with what keeps it alive.
#[macro_export]
macro_rules! key_pool_tests {
    ($open:expr) => {
        mod key_pool {
            use super::*;
            $crate::clause_tests!(
                $open,
                key_pool,
                an_empty_pool_gives_nothing,
                first_in_is_first_out,
                keys_can_be_looked_at_and_stay,
                a_full_pool_takes_a_prefix,
                a_batch_is_pushed_once,
                keys_keep_their_case,
                racing_pops_are_disjoint_and_complete,
                racing_pushes_stay_under_the_cap,
                racing_pushes_of_one_batch_add_it_once
            );
        }
    };
}

/// Keys that a pool under test holds.
pub const CAP: usize = 100;

pub async fn an_empty_pool_gives_nothing(pool: Port) -> Result<()> {
    same("depth", pool.depth().await?, 0)?;
    same("popped", pool.pop(10).await?, vec![])?;
    same("pushed", pool.push(&batch("b"), &[]).await?, 0)?;
    same("depth", pool.depth().await?, 0)
}

pub async fn first_in_is_first_out(pool: Port) -> Result<()> {
    let all = keys("k", 10);
    same("pushed", pool.push(&batch("a"), &all[..6]).await?, 6)?;
    same("pushed", pool.push(&batch("b"), &all[6..]).await?, 4)?;
    same("depth", pool.depth().await?, 10)?;
    same("none asked for", pool.pop(0).await?, vec![])?;
    same("the first", pool.pop(4).await?, all[..4].to_vec())?;
    same("depth", pool.depth().await?, 6)?;
    same("the rest", pool.pop(100).await?, all[4..].to_vec())?;
    same("depth", pool.depth().await?, 0)
}

pub async fn keys_can_be_looked_at_and_stay(pool: Port) -> Result<()> {
    let all = keys("k", 10);
    same("an empty pool", pool.peek(0, 5).await?, vec![])?;
    pool.push(&batch("a"), &all).await?;
    same("none asked for", pool.peek(0, 0).await?, vec![])?;
    same("the first", pool.peek(0, 4).await?, all[..4].to_vec())?;
    same("the rest", pool.peek(4, 100).await?, all[4..].to_vec())?;
    same("past the end", pool.peek(10, 5).await?, vec![])?;
    same("depth", pool.depth().await?, 10)?;
    same("all are there", pool.pop(10).await?, all)
}

pub async fn a_full_pool_takes_a_prefix(pool: Port) -> Result<()> {
    let all = keys("k", CAP + 20);
    same("what fits", pool.push(&batch("a"), &all).await?, CAP)?;
    same(
        "nothing fits",
        pool.push(&batch("b"), &keys("x", 5)).await?,
        0,
    )?;
    same("depth", pool.depth().await?, CAP as u64)?;
    same("popped", pool.pop(3).await?, all[..3].to_vec())?;
    same(
        "room for three",
        pool.push(&batch("c"), &keys("y", 5)).await?,
        3,
    )?;
    let mut want = all[3..CAP].to_vec();
    want.extend(keys("y", 3));
    same("a prefix of each", pool.pop(CAP * 2).await?, want)
}

pub async fn a_batch_is_pushed_once(pool: Port) -> Result<()> {
    let all = keys("k", CAP + 20);
    same("what fits", pool.push(&batch("a"), &all).await?, CAP)?;
    pool.pop(50).await?;
    same("the first answer", pool.push(&batch("a"), &all).await?, CAP)?;
    same("nothing is added", pool.depth().await?, CAP as u64 - 50)?;
    pool.pop(CAP).await?;
    same("even when empty", pool.push(&batch("a"), &all).await?, CAP)?;
    same("nothing is added", pool.depth().await?, 0)
}

pub async fn keys_keep_their_case(pool: Port) -> Result<()> {
    let all = vec![key("aB"), key("Ab"), key("-_."), key(&"z".repeat(64))];
    pool.push(&batch("a"), &all).await?;
    same("popped", pool.pop(10).await?, all)
}

pub async fn racing_pops_are_disjoint_and_complete(pool: Port) -> Result<()> {
    pool.push(&batch("a"), &keys("k", CAP)).await?;
    let popped = race(RACERS, |_| {
        let pool = Arc::clone(&pool);
        async move { pool.pop(3).await }
    })
    .await?;
    ensure!(popped.iter().all(|keys| keys.len() <= 3), "over the limit");
    let mut popped: Vec<Key> = popped.into_iter().flatten().collect();
    popped.sort();
    same("each key once, and all", popped, keys("k", CAP))
}

pub async fn racing_pushes_stay_under_the_cap(pool: Port) -> Result<()> {
    let pushed = race(16, |n| {
        let pool = Arc::clone(&pool);
        let own = keys(&format!("r{n}-"), 10);
        async move { pool.push(&batch(&format!("b{n}")), &own).await }
    })
    .await?;
    same("pushed", pushed.iter().sum::<usize>(), CAP)?;
    same("depth", pool.depth().await?, CAP as u64)?;
    let keys: HashSet<Key> = pool.pop(CAP).await?.into_iter().collect();
    same("distinct", keys.len(), CAP)
}

pub async fn racing_pushes_of_one_batch_add_it_once(pool: Port) -> Result<()> {
    let pushed = race(16, |_| {
        let pool = Arc::clone(&pool);
        async move { pool.push(&batch("same"), &keys("k", 10)).await }
    })
    .await?;
    same("answers", pushed, vec![10; 16])?;
    same("depth", pool.depth().await?, 10)
}
