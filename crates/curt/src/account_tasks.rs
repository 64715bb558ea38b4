//! What accounts need done by the clock.

use std::sync::Arc;
use std::time::Duration;

use curt_accounts::AccountServices;
use curt_core::PortResult;
use curt_core::names::event;
use curt_http::limit_visits;
use curt_links::Resolver;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::supervisor::Supervisor;

/// How soon a changed limit on visits counts.
const LIMITS_EVERY: Duration = Duration::from_millis(500);
/// How old "last used" may be after a crash.
const USED_EVERY: Duration = Duration::from_secs(60);
const SESSIONS_EVERY: Duration = Duration::from_secs(600);

pub(crate) fn start(supervisor: &Supervisor, accounts: &AccountServices, resolver: &Arc<Resolver>) {
    let (services, resolver) = (accounts.clone(), resolver.clone());
    supervisor.start("account-limits", |stop| async move {
        let mut clock = Ticks::every(LIMITS_EVERY, stop);
        while clock.ticks().await {
            report(limit_visits(&services, &resolver).await);
        }
    });
    let api_keys = accounts.api_keys.clone();
    supervisor.start("api-key-use", |stop| async move {
        let mut clock = Ticks::every(USED_EVERY, stop);
        while clock.ticks().await {
            report(api_keys.flush_used().await);
        }
        report(api_keys.flush_used().await);
    });
    let people = accounts.people.clone();
    supervisor.start("session-purge", |stop| async move {
        let mut clock = Ticks::every(SESSIONS_EVERY, stop);
        while clock.ticks().await {
            report(people.purge_sessions().await.map(drop));
        }
    });
}

/// A clock for work that is done again and again until the process stops.
struct Ticks {
    interval: Interval,
    stop: CancellationToken,
}

impl Ticks {
    fn every(period: Duration, stop: CancellationToken) -> Self {
        let mut interval = tokio::time::interval(period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { interval, stop }
    }

    /// Waits for the next time; `false` when there is none.
    async fn ticks(&mut self) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            _ = self.interval.tick() => true,
        }
    }
}

fn report(done: PortResult<()>) {
    if let Err(failure) = done {
        warn!(event = event::STORE_FAILED, %failure, "account upkeep failed; it is tried again");
    }
}
