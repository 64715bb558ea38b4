//! Finds out, once a second, what this process can do now, for `/health/ready` and `/health/create`.

use std::sync::Arc;
use std::time::Duration;

use curt_core::names::event;
use curt_core::ports::LinkStore;
use curt_core::{ErrorKind, PortError, PortResult};
use curt_http::{Impact, Readiness};
use curt_keys::KeySupply;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::wiring::{Engines, PortErrors};

const EVERY: Duration = Duration::from_secs(1);
/// A look that takes longer has failed: what waits for the same engine gets no answer either.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Reads that fail in a row before requests are sent elsewhere: every server sees a short failure of a shared engine at
/// the same time, and then there is no elsewhere.
const FAILED_READS: u32 = 2;
/// A look at writes is a write. Where others may cut this process off, it comes often; on its own file only failed
/// writes of its own call for one.
const WRITES_EVERY_SHARED: Duration = Duration::from_secs(5);
const ENGINES_EVERY: Duration = Duration::from_secs(5);

const READ_LINKS: &str = "read_links";
const CREATE_LINKS: &str = "create_links";
const ENGINES: &str = "engines";
const KEY_SUPPLY: &str = "key_supply";

/// Watches the links database.
pub(crate) struct LinkHealth {
    pub(crate) links: Arc<dyn LinkStore>,
    pub(crate) errors: PortErrors,
    pub(crate) ready: Arc<Readiness>,
    /// Whether other processes use the database, too.
    pub(crate) is_shared: bool,
}

impl LinkHealth {
    pub(crate) async fn watch(self, stop: CancellationToken) {
        let mut failed_reads = 0;
        let mut writes_checked: Option<Instant> = None;
        let mut writes_pass = true;
        loop {
            failed_reads = match self.read().await {
                Ok(()) => {
                    note_pass(&self.ready, READ_LINKS);
                    0
                }
                Err(failure) => {
                    let failed = failed_reads + 1;
                    if failed >= FAILED_READS {
                        note_fail(&self.ready, READ_LINKS, Impact::Unavailable, &failure);
                    }
                    failed
                }
            };
            let has_failed = self.errors.take_write_failed();
            let is_due = self.is_shared
                && writes_checked.is_none_or(|last| last.elapsed() >= WRITES_EVERY_SHARED);
            if has_failed || !writes_pass || is_due {
                writes_pass = self.check_writes().await;
                writes_checked = Some(Instant::now());
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    async fn read(&self) -> PortResult<()> {
        within_timeout("look up a link", self.links.ping_reads()).await
    }

    async fn check_writes(&self) -> bool {
        match within_timeout("write", self.links.ping()).await {
            Ok(()) => {
                note_pass(&self.ready, CREATE_LINKS);
                true
            }
            Err(failure) => {
                note_fail(&self.ready, CREATE_LINKS, Impact::NoCreates, &failure);
                false
            }
        }
    }
}

/// Lets a process that only makes or moves keys not be ready before [`watch_engines`] has reached one.
pub(crate) fn await_engines(ready: &Readiness) {
    let reason = "no engine has answered yet";
    ready.fail(ENGINES, Impact::Unavailable, reason);
}

/// Watches the engines of a process that only makes or moves keys: it can work while one of them answers.
pub(crate) async fn watch_engines(
    engines: Arc<Engines>,
    ready: Arc<Readiness>,
    stop: CancellationToken,
) {
    loop {
        let reached = engines.reach().await;
        let count = reached.len();
        let mut failures = reached
            .into_iter()
            .filter_map(|(_, answer)| answer.err())
            .collect::<Vec<_>>();
        let impact = match failures.len() {
            away if away == count => Impact::Unavailable,
            _ => Impact::Degraded,
        };
        match failures.pop() {
            None => note_pass(&ready, ENGINES),
            Some(failure) => note_fail(&ready, ENGINES, impact, &failure),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ENGINES_EVERY) => {}
        }
    }
}

/// Shows what the key supply has noticed about its accounts (K-2).
pub(crate) async fn watch_keys(
    supply: Arc<KeySupply>,
    ready: Arc<Readiness>,
    stop: CancellationToken,
) {
    loop {
        match supply.imbalance() {
            // It logs both by itself.
            Some(reason) => ready.fail(KEY_SUPPLY, Impact::Degraded, reason),
            None => ready.pass(KEY_SUPPLY),
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn within_timeout<T>(
    op: &'static str,
    work: impl Future<Output = PortResult<T>>,
) -> PortResult<T> {
    let late = || {
        let detail = format!("no answer within {TIMEOUT:?}");
        PortError::new(ErrorKind::Timeout, "store", op, detail)
    };
    tokio::time::timeout(TIMEOUT, work)
        .await
        .unwrap_or_else(|_| Err(late()))
}

pub(crate) fn note_pass(ready: &Readiness, check: &'static str) {
    if ready.pass(check) {
        info!(event = event::HEALTH_CHANGED, check, "health check passed");
    }
}

pub(crate) fn note_fail(
    ready: &Readiness,
    check: &'static str,
    impact: Impact,
    failure: &impl std::fmt::Display,
) {
    if ready.fail(check, impact, failure.to_string()) {
        let impact = impact.as_str();
        warn!(event = event::HEALTH_CHANGED, check, impact, error = %failure, "health check failed");
    }
}
