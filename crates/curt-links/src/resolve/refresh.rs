//! Copies that are wanted often are loaded again before they end, so that nobody waits for the load.
//!
//! Requests draw lots: one in [`ODDS`] that meets an aging copy asks for the refresh, so that keys that are wanted rarely
//! are not loaded for nothing, and servers that have loaded a key together do not refresh it together.

use std::sync::{Arc, Mutex, PoisonError};

use curt_core::{LinkId, LinkRef};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Resolver;
use super::freshness::CopyAge;
use super::single_flight::Join;

const ODDS: u32 = 8;
/// Refreshes that wait; more are asked for again by the next request.
const WAITING_MAX: usize = 256;
const AT_ONCE_MAX: usize = 32;

pub(super) struct RefreshQueue {
    asked: mpsc::Sender<LinkId>,
    waiting: Mutex<Option<mpsc::Receiver<LinkId>>>,
}

impl RefreshQueue {
    pub(super) fn new() -> Self {
        let (asked, waiting) = mpsc::channel(WAITING_MAX);
        Self {
            asked,
            waiting: Mutex::new(Some(waiting)),
        }
    }

    /// Asks for the refresh of a copy that was met.
    #[cold]
    pub(super) fn meet(&self, link: LinkRef<'_>) {
        if rand::random_range(0..ODDS) == 0
            && let Some(id) = link.to_id()
        {
            // Full: the copy ends as any other does.
            self.asked.try_send(id).ok();
        }
    }

    fn take(&self) -> Option<mpsc::Receiver<LinkId>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.take()
    }
}

impl Resolver {
    /// Refreshes what requests have met, until `stop`. The first caller does; others return at once.
    pub async fn run_refreshes(self: Arc<Self>, stop: CancellationToken) {
        let Some(mut asked) = self.refreshes.take() else {
            return;
        };
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = running.join_next() => {}
                Some(id) = asked.recv(), if running.len() < AT_ONCE_MAX => {
                    let resolver = Arc::clone(&self);
                    running.spawn(async move { resolver.refresh(&id).await });
                }
            }
        }
    }

    async fn refresh(&self, id: &LinkId) {
        let began = self.clock.now();
        let Some(copy) = self.live.get(id.as_ref()) else {
            return;
        };
        // Somebody else was asked first.
        if self.freshness.age(copy.loaded_at(), began) == CopyAge::Fresh {
            return;
        }
        if let Join::Leader(leader) = self.single_flight.join(id, began, |_| true) {
            self.metrics.refreshed.inc();
            self.lead(leader, id, began).await;
        }
    }
}
