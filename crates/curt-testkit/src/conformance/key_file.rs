//! Clauses of [`KeyFile`]. What a damaged file looks like is the adapter's own to know, and to test.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::{KeyFile, KeyFileLayout, KeyFileStat};
use curt_core::{ErrorKind, Key};

use super::{race, same};
use crate::sample::{key, keys};

type Port = Arc<dyn KeyFile>;

/// A test for each clause. `$open` gives a fresh adapter, with what keeps it alive.
#[macro_export]
macro_rules! key_file_tests {
    ($open:expr) => {
        mod key_file {
            use super::*;
            $crate::clause_tests!(
                $open,
                key_file,
                an_unknown_file_is_absent,
                a_file_is_seen_once_published,
                a_dropped_writer_leaves_nothing,
                an_unfinished_file_is_started_anew,
                a_published_name_is_taken,
                keys_are_read_at_every_position,
                an_empty_file_has_no_keys,
                a_key_of_another_width_is_refused,
                impossible_layouts_are_refused,
                every_width_is_kept,
                names_are_sorted,
                racing_writers_publish_one_file,
                readers_never_see_half_a_file
            );
        }
    };
}

/// Sample keys are a letter and six digits.
const LAYOUT: KeyFileLayout = KeyFileLayout {
    width: 7,
    block_keys: 10,
};

fn stat(keys: u64) -> KeyFileStat {
    KeyFileStat {
        layout: LAYOUT,
        keys,
    }
}

async fn publish(files: &Port, name: &str, keys: &[Key]) -> Result<()> {
    let mut writer = files.create(name, LAYOUT).await?;
    writer.append(keys).await?;
    let got = writer.publish().await?;
    same("published", got, stat(keys.len() as u64))
}

fn refused<T>(what: &str, got: curt_core::PortResult<T>) -> Result<()> {
    match got {
        Ok(_) => anyhow::bail!("{what}: was not refused"),
        Err(error) => same(what, error.kind, ErrorKind::Invalid),
    }
}

pub async fn an_unknown_file_is_absent(files: Port) -> Result<()> {
    same("stat", files.stat("a").await?, None)?;
    same("names", files.names().await?, vec![])?;
    refused("read", files.read("a", 0, 1).await)
}

pub async fn a_file_is_seen_once_published(files: Port) -> Result<()> {
    let mut writer = files.create("a", LAYOUT).await?;
    writer.append(&keys("k", 25)).await?;
    same("stat before", files.stat("a").await?, None)?;
    same("names before", files.names().await?, vec![])?;
    refused("read before", files.read("a", 0, 1).await)?;
    same("published", writer.publish().await?, stat(25))?;
    same("stat", files.stat("a").await?, Some(stat(25)))?;
    same("names", files.names().await?, vec!["a".into()])?;
    same("read", files.read("a", 0, 100).await?, keys("k", 25))
}

pub async fn a_dropped_writer_leaves_nothing(files: Port) -> Result<()> {
    let mut writer = files.create("a", LAYOUT).await?;
    writer.append(&keys("k", 25)).await?;
    drop(writer);
    same("stat", files.stat("a").await?, None)?;
    same("names", files.names().await?, vec![])?;
    publish(&files, "a", &keys("x", 3)).await?;
    same("read", files.read("a", 0, 100).await?, keys("x", 3))
}

pub async fn an_unfinished_file_is_started_anew(files: Port) -> Result<()> {
    let mut left = files.create("a", LAYOUT).await?;
    left.append(&keys("k", 25)).await?;
    publish(&files, "a", &keys("x", 12)).await?;
    same("read", files.read("a", 0, 100).await?, keys("x", 12))?;
    refused("the one left behind", left.publish().await)?;
    same("read again", files.read("a", 0, 100).await?, keys("x", 12))
}

pub async fn a_published_name_is_taken(files: Port) -> Result<()> {
    publish(&files, "a", &keys("k", 5)).await?;
    refused("create", files.create("a", LAYOUT).await)?;
    same("read", files.read("a", 0, 100).await?, keys("k", 5))
}

pub async fn keys_are_read_at_every_position(files: Port) -> Result<()> {
    const KEYS: usize = 37;
    let all = keys("k", KEYS);
    let mut writer = files.create("a", LAYOUT).await?;
    for part in all.chunks(9) {
        writer.append(part).await?;
    }
    writer.append(&[]).await?;
    same("published", writer.publish().await?, stat(KEYS as u64))?;
    for first in 0..KEYS + 2 {
        for count in [0, 1, 9, 10, 11, 21, 100] {
            let got = files.read("a", first as u64, count).await?;
            let start = first.min(KEYS);
            let want = &all[start..(start + count).min(KEYS)];
            ensure!(got == want, "{count} keys from {first}: got {got:?}");
        }
    }
    same(
        "far past the end",
        files.read("a", u64::MAX, 10).await?,
        vec![],
    )?;
    let most = files.read("a", 0, usize::MAX).await?;
    same("as many as there are", most, all)
}

pub async fn an_empty_file_has_no_keys(files: Port) -> Result<()> {
    publish(&files, "a", &[]).await?;
    same("stat", files.stat("a").await?, Some(stat(0)))?;
    same("read", files.read("a", 0, 10).await?, vec![])
}

pub async fn a_key_of_another_width_is_refused(files: Port) -> Result<()> {
    let mut writer = files.create("a", LAYOUT).await?;
    writer.append(&keys("k", 2)).await?;
    for odd in ["short", "much-too-long"] {
        let mut mixed = keys("x", 3);
        mixed.push(key(odd));
        refused(odd, writer.append(&mixed).await)?;
    }
    writer.append(&keys("y", 1)).await?;
    writer.publish().await?;
    let mut want = keys("k", 2);
    want.extend(keys("y", 1));
    same(
        "nothing of the refused calls",
        files.read("a", 0, 10).await?,
        want,
    )
}

pub async fn impossible_layouts_are_refused(files: Port) -> Result<()> {
    for (width, block_keys) in [(0, 10), (65, 10), (7, 0)] {
        let layout = KeyFileLayout { width, block_keys };
        refused(&format!("{layout:?}"), files.create("a", layout).await)?;
    }
    Ok(())
}

pub async fn every_width_is_kept(files: Port) -> Result<()> {
    for width in [1, 2, 22, 64] {
        for block_keys in [1, 3, 10_000] {
            let name = format!("w{width}b{block_keys}");
            let layout = KeyFileLayout { width, block_keys };
            let all: Vec<Key> = ["a", "B", "-", "_", "9"]
                .map(|symbol| key(&symbol.repeat(width)))
                .to_vec();
            let mut writer = files.create(&name, layout).await?;
            writer.append(&all).await?;
            writer.publish().await?;
            let got = files.stat(&name).await?.map(|stat| stat.layout);
            same("layout", got, Some(layout))?;
            same("read", files.read(&name, 0, 10).await?, all)?;
        }
    }
    Ok(())
}

pub async fn names_are_sorted(files: Port) -> Result<()> {
    for name in ["keys-2", "keys-10", "a.b_c-d", "KEYS"] {
        publish(&files, name, &keys("k", 1)).await?;
    }
    let want = ["KEYS", "a.b_c-d", "keys-10", "keys-2"];
    same("names", files.names().await?, want.map(Into::into).to_vec())
}

pub async fn racing_writers_publish_one_file(files: Port) -> Result<()> {
    let published = race(8, |n| {
        let files = Arc::clone(&files);
        async move {
            let own = keys(&format!("{n}"), 30);
            let mut writer = match files.create("a", LAYOUT).await {
                Err(error) if error.kind == ErrorKind::Invalid => return Ok(None),
                created => created?,
            };
            writer.append(&own).await?;
            match writer.publish().await {
                Err(error) if error.kind == ErrorKind::Invalid => Ok(None),
                done => done.map(|_| Some(own)),
            }
        }
    })
    .await?;
    let winners: Vec<Vec<Key>> = published.into_iter().flatten().collect();
    ensure!(winners.len() == 1, "{} writers published", winners.len());
    same(
        "the winner's",
        files.read("a", 0, 100).await?,
        winners[0].clone(),
    )
}

pub async fn readers_never_see_half_a_file(files: Port) -> Result<()> {
    const KEYS: usize = 500;
    race(4, |n| {
        let files = Arc::clone(&files);
        async move {
            if n == 0 {
                let mut writer = files.create("a", LAYOUT).await?;
                for part in keys("k", KEYS).chunks(50) {
                    writer.append(part).await?;
                }
                writer.publish().await?;
                return Ok(());
            }
            loop {
                if files.stat("a").await?.is_some() {
                    let got = files.read("a", 0, KEYS).await?;
                    assert_eq!(got.len(), KEYS, "half a file");
                    return Ok(());
                }
                tokio::task::yield_now().await;
            }
        }
    })
    .await?;
    Ok(())
}

/// `open` opens the store in `folder`; what an earlier one wrote there must be found again.
pub async fn survives_reopening(folder: &Path, open: impl AsyncFn(&Path) -> Port) -> Result<()> {
    let files = open(folder).await;
    publish(&files, "a", &keys("k", 37)).await?;
    let mut unfinished = files.create("b", LAYOUT).await?;
    unfinished.append(&keys("x", 5)).await?;
    drop(files);
    let files = open(folder).await;
    same("names", files.names().await?, vec!["a".into()])?;
    same("stat", files.stat("a").await?, Some(stat(37)))?;
    same("read", files.read("a", 0, 100).await?, keys("k", 37))?;
    publish(&files, "b", &keys("y", 2)).await
}
