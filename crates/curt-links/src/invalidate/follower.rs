use std::sync::Arc;
use std::time::Duration;

use curt_core::names::event;
use curt_core::ports::{Invalidation, InvalidationFeed, Invalidations};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::InvalidationMetrics;
use crate::resolve::{CHANNEL_LEASE, Resolver};

/// After changes were missed, copies are dropped once more, when replicas have them: `postgres.replica_lag_max` and a bit.
const DROP_AGAIN_AFTER: Duration = Duration::from_millis(1_500);
/// Between attempts to subscribe.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Drops the copies of what others change, until `stop`.
pub async fn follow(
    resolver: Arc<Resolver>,
    channel: Arc<dyn Invalidations>,
    metrics: InvalidationMetrics,
    stop: CancellationToken,
) {
    let follower = Follower { resolver, metrics };
    // A process that finds the channel at once may use what others have put into the shared cache before it began: without
    // that, every start would cost the store a load of each link.
    let mut may_have_missed = false;
    loop {
        let feed = tokio::select! {
            () = stop.cancelled() => return,
            feed = channel.subscribe() => feed,
        };
        match feed {
            Ok(feed) => follower.read(feed, may_have_missed, &stop).await,
            Err(error) => tracing::debug!(%error, "not subscribed to invalidations"),
        }
        may_have_missed = true;
        follower.metrics.up.set(0);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY_AFTER) => {}
        }
    }
}

struct Follower {
    resolver: Arc<Resolver>,
    metrics: InvalidationMetrics,
}

impl Follower {
    async fn read(
        &self,
        mut feed: Box<dyn InvalidationFeed>,
        mut may_have_missed: bool,
        stop: &CancellationToken,
    ) {
        // Copies from before the subscription may be old, and would live longer from now on.
        self.drop_copies(may_have_missed);
        let mut drop_again_at = Some(Instant::now() + DROP_AGAIN_AFTER);
        loop {
            let told = tokio::select! {
                () = stop.cancelled() => return,
                told = timeout(CHANNEL_LEASE, feed.next()) => told,
                () = sleep_until(drop_again_at.unwrap_or_else(Instant::now)), if drop_again_at.is_some() => {
                    drop_again_at = None;
                    self.drop_copies(may_have_missed);
                    continue;
                }
            };
            match told {
                Ok(Some(told)) => {
                    if told == Invalidation::Gap {
                        may_have_missed = true;
                        drop_again_at = Some(Instant::now() + DROP_AGAIN_AFTER);
                    }
                    self.apply(told);
                }
                Ok(None) => return,
                Err(_) => self.note_silence(),
            }
        }
    }

    fn drop_copies(&self, may_have_missed: bool) {
        match may_have_missed {
            true => self.resolver.drop_missed(),
            false => self.resolver.invalidate_all(),
        }
    }

    fn apply(&self, told: Invalidation) {
        match told {
            Invalidation::Changed { changes, .. } => {
                self.metrics.received.inc_by(changes.len() as u64);
                self.resolver.apply_changes(&changes);
            }
            Invalidation::Gap => {
                self.metrics.gaps.inc();
                tracing::warn!(
                    event = event::INVALIDATIONS_MISSED,
                    "invalidations missed, copies dropped"
                );
                self.resolver.drop_missed();
            }
            Invalidation::Alive { asked_at } => {
                self.resolver.confirm_channel(asked_at);
                self.metrics.up.set(1);
            }
        }
    }

    fn note_silence(&self) {
        if self.metrics.up.set(0) == 1 {
            tracing::warn!(
                event = event::INVALIDATIONS_SILENT,
                "invalidation channel does not answer"
            );
        }
    }
}
