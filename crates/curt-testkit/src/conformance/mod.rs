//! One suite per port. An adapter is done when it passes.
//!
//! A suite is a macro that makes one test of each clause of the port's documentation, on a fresh and empty adapter of its
//! own. Tests run on multi-threaded runtimes, so that the racing clauses race.

pub mod accounts;
pub mod caches;
pub mod clicks;
pub mod cursor;
pub mod heartbeats;
pub mod key_file;
pub mod key_ledger;
pub mod key_pool;
pub mod leases;
pub mod links;
pub mod quotas;
pub mod shards;
pub mod transfer;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use curt_core::clock::ManualClock;
use curt_core::{ErrorKind, PortResult};
use tokio::sync::Barrier;

/// A clause that takes longer than this hangs.
const CLAUSE_TIME_MAX: Duration = Duration::from_secs(120);

/// Tasks that race for one thing.
const RACERS: usize = 64;

/// Texts that a careless adapter cuts, folds, quotes or runs.
const HOSTILE_TEXTS: [&str; 12] = [
    "'; DROP TABLE links; --",
    "\" OR \"\"=\"",
    "100%",
    "a_b",
    "back\\slash",
    "{}[](),;:$1?1@p",
    "tab\tand\nnewline\r\n",
    " spaces around ",
    "\u{1f980} crab",
    "e\u{301} is not \u{e9}",
    "\u{202e}right to left",
    "NULL",
];

/// Runs one clause.
///
/// # Panics
/// With what the clause saw, when it fails.
pub async fn run_clause(clause: impl Future<Output = Result<()>>) {
    let outcome = tokio::time::timeout(CLAUSE_TIME_MAX, clause).await;
    if let Err(error) = outcome.context("did not come to an end").flatten() {
        panic!("{error:#}");
    }
}

/// A test for each clause. `$open` gives a fresh adapter, with what keeps it alive.
#[macro_export]
macro_rules! clause_tests {
    ($open:expr, $family:ident::$part:ident, $($clause:ident),+ $(,)?) => { $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $clause() {
            let (_alive, adapter) = $open;
            let clause = $crate::conformance::$family::$part::$clause(adapter);
            $crate::conformance::run_clause(clause).await;
        }
    )+ };
    ($open:expr, $port:ident, $($clause:ident),+ $(,)?) => { $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $clause() {
            let (_alive, adapter) = $open;
            let clause = $crate::conformance::$port::$clause(adapter);
            $crate::conformance::run_clause(clause).await;
        }
    )+ };
}

/// A test for a clause about reopening. `$open` gives what keeps the engine alive, a folder or place in it, and what opens
/// an adapter there.
#[macro_export]
macro_rules! reopening_tests {
    ($open:expr, $($path:ident)::+, $clause:ident) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $clause() {
            let (_alive, folder, open) = $open;
            let clause = $crate::conformance::$($path)::+::$clause(folder.as_ref(), open);
            $crate::conformance::run_clause(clause).await;
        }
    };
}

/// How time passes for an adapter: by itself, or by a clock that the test moves.
#[derive(Clone)]
pub enum TestTime {
    Real,
    Manual(Arc<ManualClock>),
}

impl TestTime {
    pub async fn pass(&self, by: Duration) {
        match self {
            Self::Real => tokio::time::sleep(by).await,
            Self::Manual(clock) => clock.advance(by),
        }
    }
}

/// Fails unless `got` is `want`; `what` says what was looked at.
fn same<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Result<()> {
    ensure!(got == want, "{what}: got {got:?}, expected {want:?}");
    Ok(())
}

/// Fails unless the call was refused with `kind`.
fn refused<T: Debug>(what: &str, got: PortResult<T>, kind: ErrorKind) -> Result<()> {
    match got {
        Ok(value) => anyhow::bail!("{what}: got {value:?}, expected an error of kind {kind:?}"),
        Err(error) => same(what, error.kind, kind),
    }
}

/// Runs `count` tasks that start together and returns their results in order.
async fn race<T, F>(count: usize, mut task: impl FnMut(usize) -> F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = PortResult<T>> + Send + 'static,
{
    let start = Arc::new(Barrier::new(count));
    let mut tasks = Vec::new();
    for n in 0..count {
        let start = Arc::clone(&start);
        let work = task(n);
        tasks.push(tokio::spawn(async move {
            start.wait().await;
            work.await
        }));
    }
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await??);
    }
    Ok(results)
}
