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

/// Wakes the reconcilers of this process before their tick. A nudge carries no data and may be lost.
#[derive(Debug, Default)]
pub(crate) struct Nudges {
    pub(crate) keygen: Notify,
    pub(crate) keysync: Notify,
}

/// Sleeps until the next pass is due, or the work is to end.
pub(crate) async fn next_pass(wake: &Notify, tick: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = wake.notified() => {}
        () = tokio::time::sleep(jittered(tick)) => {}
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
