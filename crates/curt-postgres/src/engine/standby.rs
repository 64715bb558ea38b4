//! Look-ups at a standby while the primary does not answer.
//!
//! A standby is behind its primary. It is asked only where the primary is away or silent, and believed only
//!
//! - when it has applied everything that it has received, asked before the look-up on the same connection: with
//!   synchronous replication that is everything that was ever acknowledged, so that nothing older is served than the
//!   primary would have (L-2);
//! - and when that reaches to where the primary was when we heard from it last ([`Standby::note_primary`]), so that one
//!   that was cut off long ago is not believed. The position before the last is taken: with asynchronous replication
//!   the very last may never have left the primary.
//!
//! What it does not have is no answer: it may have been on its way.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};
use tokio::time::Instant;
use tokio_postgres::{Error, Row};

use super::lane::{Lane, Session};
use super::{Engine, Step};
use crate::failure::BACKEND;
use curt_adapter_kit::Effect;

/// Whether a host may be believed, given the position that it must have reached. A standby that was restarted and has not
/// reached its primary since does not know what it has received.
const IS_CURRENT: &str = "SELECT NOT pg_is_in_recovery() OR coalesce(\
    pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn() \
    AND pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') >= $1::bigint, false)";
/// How soon a standby is asked again that was about to apply something, at first and at last.
const BACKOFF_FIRST: Duration = Duration::from_millis(5);
const BACKOFF_MAX: Duration = Duration::from_millis(100);
/// How long the standby is asked at once after the primary kept a look-up waiting.
const SILENT_FOR: Duration = Duration::from_millis(500);

pub(super) struct Standby {
    lane: Arc<Lane>,
    after: Duration,
    /// Until when the primary counts as silent, in milliseconds of `clock`.
    silent_until: AtomicU64,
    clock: Instant,
    /// Where the primary was when we heard from it last, and the time before that.
    last: AtomicI64,
    before_last: AtomicI64,
}

impl Standby {
    pub(super) fn new(lane: Arc<Lane>, after: Duration) -> Arc<Self> {
        Arc::new(Self {
            lane,
            after,
            silent_until: AtomicU64::new(0),
            clock: Instant::now(),
            last: AtomicI64::new(0),
            before_last: AtomicI64::new(0),
        })
    }

    /// Remembers where the primary is in its log. To be called about once a second.
    pub(super) fn note_primary(&self, position: i64) {
        let before = self.last.swap(position, Ordering::Relaxed);
        // Another primary may begin behind the former one.
        self.before_last
            .store(before.min(position), Ordering::Relaxed);
    }

    /// Takes the primary's answer if it comes in time, and else what is found first; and says whether the primary kept
    /// this look-up waiting. `is_up`: whether the primary lets us in, as far as we know.
    pub(super) async fn race<T>(
        &self,
        is_up: bool,
        primary: impl Future<Output = PortResult<Option<T>>>,
        standby: impl Future<Output = PortResult<Option<T>>>,
    ) -> (PortResult<Option<T>>, bool) {
        let mut primary = pin!(primary);
        let mut is_silent = false;
        if is_up && !self.is_primary_silent() {
            match tokio::time::timeout(self.after, &mut primary).await {
                Ok(Err(refusal)) if refusal.is_transient() => {
                    return (found_or(standby.await, refusal), false);
                }
                Ok(answer) => return (answer, false),
                Err(_) => is_silent = true,
            }
            self.note_silence();
        }
        let mut standby = pin!(standby);
        let found = tokio::select! {
            biased;
            answer = &mut primary => match answer {
                Err(refusal) if refusal.is_transient() => found_or(standby.await, refusal),
                answer => {
                    self.silent_until.store(0, Ordering::Relaxed);
                    answer
                }
            },
            found = &mut standby => match found {
                Ok(Some(found)) => Ok(Some(found)),
                Ok(None) | Err(_) => primary.await,
            },
        };
        (found, is_silent)
    }

    fn is_primary_silent(&self) -> bool {
        self.now() < self.silent_until.load(Ordering::Relaxed)
    }

    fn note_silence(&self) {
        let silent_for = u64::try_from(SILENT_FOR.as_millis()).unwrap_or(u64::MAX);
        let until = self.now().saturating_add(silent_for);
        self.silent_until.store(until, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Asks a standby as soon as it is current.
    pub(super) async fn ask(
        &self,
        engine: &Engine,
        op: &'static str,
        step: Step<'_>,
        deadline: Instant,
    ) -> PortResult<Vec<Row>> {
        let position = self.before_last.load(Ordering::Relaxed);
        let mut backoff = BACKOFF_FIRST;
        while Instant::now() < deadline {
            let session = engine.session(op, &self.lane, deadline).await?;
            let work = run_if_current(&session, step, position);
            let until = (&*self.lane, deadline);
            let done = engine.within(op, Effect::None, until, work).await;
            if let Some(rows) = engine.finish(op, Effect::None, session, done)? {
                return Ok(rows);
            }
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
        let detail = format!(
            "no standby of {} has everything that the primary had; the primary does not answer",
            engine.address()
        );
        Err(PortError::new(ErrorKind::Unavailable, BACKEND, op, detail))
    }
}

/// What a standby has; where it has nothing, the primary's refusal stays.
fn found_or<T>(found: PortResult<Option<T>>, refusal: PortError) -> PortResult<Option<T>> {
    match found {
        Ok(Some(found)) => Ok(Some(found)),
        Ok(None) | Err(_) => Err(refusal),
    }
}

/// Both statements go out together, and are run one after the other.
async fn run_if_current(
    client: &Session,
    step: Step<'_>,
    position: i64,
) -> Result<Option<Vec<Row>>, Error> {
    let is_current = client.prepare_cached(IS_CURRENT).await?;
    let statement = client.prepare_cached(step.sql).await?;
    let (checked, rows) = futures_util::future::join(
        client.query_one(&is_current, &[&position]),
        client.query(&statement, step.values),
    )
    .await;
    let is_current: bool = checked?.try_get(0)?;
    let rows = rows?;
    Ok(is_current.then_some(rows))
}
