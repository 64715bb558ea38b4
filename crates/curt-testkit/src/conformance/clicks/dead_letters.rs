//! Clauses of [`DeadLetters`].

use std::sync::Arc;

use anyhow::Result;
use curt_core::ports::DeadLetters;

use crate::conformance::{race, same};

/// An empty place for dead letters, and how many of a reason it has counted.
pub struct Letters {
    pub port: Arc<dyn DeadLetters>,
    pub count: Box<dyn Fn(&'static str) -> u64 + Send + Sync>,
}

pub async fn every_call_counts(letters: Letters) -> Result<()> {
    same("none", (letters.count)("short"), 0)?;
    letters.port.put(0, 7, "short", b"x");
    letters.port.put(0, 7, "short", b"x");
    letters.port.put(3, 7, "version", &[0, 255, b'"', b'\n']);
    letters.port.put(0, u64::MAX, "long", &[0xff; 100_000]);
    for (reason, count) in [("short", 2), ("version", 1), ("long", 1)] {
        same(reason, (letters.count)(reason), count)?;
    }
    Ok(())
}

pub async fn racing_letters_all_count(letters: Letters) -> Result<()> {
    race(16, |n| {
        let port = Arc::clone(&letters.port);
        async move {
            (0..20).for_each(|offset| port.put(0, offset, "range", &[n as u8]));
            Ok(())
        }
    })
    .await?;
    same("letters", (letters.count)("range"), 320)
}
