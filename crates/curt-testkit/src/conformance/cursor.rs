//! Clauses of [`Cursor`].

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::Cursor;

use super::{RACERS, race, same};

type Port = Arc<dyn Cursor>;

/// A test for each clause. `$open` gives a fresh adapter, with what keeps it alive.
#[macro_export]
macro_rules! cursor_tests {
    ($open:expr) => {
        mod cursor {
            use super::*;
            $crate::clause_tests!(
                $open,
                cursor,
                absent_is_zero,
                advances_only_from_what_was_seen,
                names_are_apart,
                holds_the_largest_number,
                one_racer_wins_each_step_k4,
                blocks_taken_by_racers_are_disjoint_and_complete_k4
            );
        }
    };
}

pub async fn absent_is_zero(cursor: Port) -> Result<()> {
    same("an unknown name", cursor.get("nobody").await?, 0)?;
    ensure!(
        !cursor.advance("nobody", 1, 2).await?,
        "an unknown name is 0, not 1"
    );
    same("after the refusal", cursor.get("nobody").await?, 0)
}

pub async fn advances_only_from_what_was_seen(cursor: Port) -> Result<()> {
    ensure!(cursor.advance("a", 0, 10_000).await?, "the first step");
    ensure!(!cursor.advance("a", 0, 10_000).await?, "called twice");
    ensure!(!cursor.advance("a", 9_999, 20_000).await?, "a wrong guess");
    same("after two refusals", cursor.get("a").await?, 10_000)?;
    ensure!(cursor.advance("a", 10_000, 20_000).await?, "the next step");
    same("after the next step", cursor.get("a").await?, 20_000)
}

pub async fn names_are_apart(cursor: Port) -> Result<()> {
    let names = ["file", "File", "file/1", "", "%", "file'; DROP TABLE x"];
    for (number, name) in (1..).zip(names) {
        ensure!(
            cursor.advance(name, 0, number).await?,
            "first step of {name:?}"
        );
    }
    for (number, name) in (1..).zip(names) {
        same(name, cursor.get(name).await?, number)?;
    }
    Ok(())
}

pub async fn holds_the_largest_number(cursor: Port) -> Result<()> {
    let most = i64::MAX as u64;
    ensure!(
        cursor.advance("a", 0, most - 1).await?,
        "to one below 2^63 - 1"
    );
    ensure!(cursor.advance("a", most - 1, most).await?, "to 2^63 - 1");
    same("the largest", cursor.get("a").await?, most)
}

pub async fn one_racer_wins_each_step_k4(cursor: Port) -> Result<()> {
    for step in 0..8 {
        let won = race(RACERS, |_| {
            let cursor = Arc::clone(&cursor);
            async move { cursor.advance("a", step, step + 1).await }
        })
        .await?;
        same(
            "winners of one step",
            won.iter().filter(|won| **won).count(),
            1,
        )?;
    }
    same("after all steps", cursor.get("a").await?, 8)
}

pub async fn blocks_taken_by_racers_are_disjoint_and_complete_k4(cursor: Port) -> Result<()> {
    const BLOCKS: u64 = 10;
    let taken = race(8, |_| {
        let cursor = Arc::clone(&cursor);
        async move {
            let mut own = Vec::new();
            while own.len() < BLOCKS as usize {
                let seen = cursor.get("file").await?;
                if cursor.advance("file", seen, seen + 100).await? {
                    own.push(seen);
                }
            }
            Ok(own)
        }
    })
    .await?;
    let mut firsts: Vec<u64> = taken.into_iter().flatten().collect();
    firsts.sort_unstable();
    let all: Vec<u64> = (0..8 * BLOCKS).map(|block| block * 100).collect();
    same("the blocks", firsts, all)
}

/// `open` opens the store in `folder`; what an earlier one wrote there must be found again.
pub async fn survives_reopening(folder: &Path, open: impl AsyncFn(&Path) -> Port) -> Result<()> {
    for round in 0..3 {
        let cursor = open(folder).await;
        same("found again", cursor.get("a").await?, round)?;
        ensure!(cursor.advance("a", round, round + 1).await?, "goes on");
    }
    Ok(())
}
