//! How background work paces itself: a reconciler runs, sleeps until it is woken or its tick comes, and runs again.
//! There are no retry loops inside a pass; the next pass is the retry.

use std::time::Duration;

use curt_core::names::event;
use curt_core::{PortError, RepeatLimiter};
use rand::RngExt;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Returns a duration within a fifth of `tick`, so that many instances do not come at the same instant.
pub(crate) fn jittered(tick: Duration) -> Duration {
    tick.mul_f64(rand::rng().random_range(0.8..1.2))
}

/// Wakes the reconcilers of this process before their tick. A nudge carries no data and may be lost.
#[derive(Debug, Default)]
pub(crate) struct Nudges {
    pub(crate) keygen: Notify,
    pub(crate) keysync: Notify,
    /// There may be keys again where a draw found none.
    pub(crate) buffer: Notify,
}

/// When a pass has to come again if nothing calls for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextPass {
    AtTick,
    /// It has done a piece of its work and left the rest for later.
    Soon,
}

impl NextPass {
    /// Returns the earlier of two.
    pub(crate) fn or(self, other: Self) -> Self {
        match self {
            Self::AtTick => other,
            Self::Soon => Self::Soon,
        }
    }
}

/// Sleeps until the next pass is due, or the work is to end.
pub(crate) async fn next_pass(
    wake: &Notify,
    next: NextPass,
    tick: Duration,
    stop: &CancellationToken,
) {
    let pause = match next {
        NextPass::AtTick => jittered(tick),
        NextPass::Soon => PIECE_EVERY.min(tick),
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = wake.notified() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

/// Keys that a refill without haste adds at a time, and how often it does.
const PIECE: u64 = 50;
const PIECE_EVERY: Duration = Duration::from_millis(100);

/// How the refills of one supply share their engines with creates.
///
/// A refill begins below the low watermark and ends at the high one. Engines that others use too are given small pieces
/// with long pauses between them, which creates do not notice; a quarter below the low watermark keys are used faster
/// than that, and the rest comes at once. An engine inside of the process writes what it gets with the creates, in one
/// go, and needs no pauses.
pub(crate) struct RefillPace {
    low: u64,
    high: u64,
    is_shared: bool,
    is_filling: bool,
    next_piece: Instant,
}

impl RefillPace {
    pub(crate) fn new(low: u64, high: u64, is_shared: bool) -> Self {
        Self {
            low,
            high,
            is_shared,
            is_filling: false,
            next_piece: Instant::now(),
        }
    }

    /// Returns how many keys to add now to a supply that has `level`.
    pub(crate) fn room(&mut self, level: u64) -> u64 {
        self.is_filling = level < self.high && (self.is_filling || level < self.low);
        if !self.is_filling {
            return 0;
        }
        let missing = self.high - level;
        if !self.is_shared || level < self.low - self.low / 4 {
            self.is_filling = false;
            return missing;
        }
        if Instant::now() < self.next_piece {
            return 0;
        }
        self.next_piece = Instant::now() + PIECE_EVERY;
        missing.min(PIECE)
    }

    /// Returns when to ask again.
    pub(crate) fn next(&self) -> NextPass {
        match self.is_filling {
            true => NextPass::Soon,
            false => NextPass::AtTick,
        }
    }
}

/// Background work swallows a failure after this line: the next pass tries again.
pub(crate) fn report(error: &PortError) {
    static FAILURES: RepeatLimiter = RepeatLimiter::new();
    if let Some(left_out) = FAILURES.admit(error) {
        tracing::warn!(
            event = event::STORE_FAILED,
            backend = error.backend,
            kind = error.kind.as_str(),
            left_out,
            "{error}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: u64 = 1_000;
    const HIGH: u64 = 2_000;

    #[tokio::test(start_paused = true)]
    async fn a_shared_engine_gets_pieces_with_pauses_until_the_high_watermark() {
        let mut pace = RefillPace::new(LOW, HIGH, true);
        assert_eq!((pace.room(LOW), pace.next()), (0, NextPass::AtTick));
        assert_eq!((pace.room(LOW - 1), pace.next()), (PIECE, NextPass::Soon));
        assert_eq!(pace.room(LOW), 0, "it pauses");
        tokio::time::advance(PIECE_EVERY).await;
        assert_eq!(pace.room(LOW + 49), PIECE, "up to the high watermark");
        tokio::time::advance(PIECE_EVERY).await;
        assert_eq!((pace.room(HIGH - 7), pace.next()), (7, NextPass::Soon));
        assert_eq!((pace.room(HIGH), pace.next()), (0, NextPass::AtTick));
        assert_eq!(pace.room(LOW), 0, "until the low watermark");
    }

    #[tokio::test(start_paused = true)]
    async fn a_supply_that_runs_short_gets_all_at_once() {
        let mut pace = RefillPace::new(LOW, HIGH, true);
        assert_eq!(pace.room(800), PIECE);
        assert_eq!(pace.room(749), HIGH - 749, "whatever the pause");
        assert_eq!((pace.room(HIGH), pace.next()), (0, NextPass::AtTick));
    }

    #[tokio::test]
    async fn an_engine_of_our_own_gets_all_at_once() {
        let mut pace = RefillPace::new(LOW, HIGH, false);
        assert_eq!((pace.room(999), pace.next()), (1_001, NextPass::AtTick));
    }
}
