//! How background work paces itself: a reconciler runs, sleeps until it is woken or its tick comes, and runs again.
//! There are no retry loops inside a pass; the next pass is the retry.

use std::time::Duration;

use curt_core::PortError;
use curt_core::names::event;
use rand::RngExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A duration within a fifth of `tick`, so that many instances do not come at the same instant.
pub(crate) fn jittered(tick: Duration) -> Duration {
    tick.mul_f64(rand::rng().random_range(0.8..1.2))
}

/// Why a reconciler runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Stop,
    Nudge,
    Tick,
}

/// Sleeps until the next pass is due.
pub(crate) async fn next_pass(wake: &Notify, tick: Duration, stop: &CancellationToken) -> Woken {
    tokio::select! {
        biased;
        () = stop.cancelled() => Woken::Stop,
        () = wake.notified() => Woken::Nudge,
        () = tokio::time::sleep(jittered(tick)) => Woken::Tick,
    }
}

/// Background work swallows a failure after this line: the next pass tries again.
pub(crate) fn report(error: &PortError) {
    tracing::warn!(
        event = event::STORE_FAILED,
        backend = error.backend,
        kind = error.kind.as_str(),
        "{error}"
    );
}
