//! What accounts need done by the clock.

use std::sync::Arc;
use std::time::Duration;

use curt_accounts::AccountServices;
use curt_core::names::event;
use curt_core::{ClockGuard, PortError, PortResult};
use curt_http::{Impact, Readiness};
use curt_links::LinkPolicy;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::backoff::Backoff;
use crate::supervisor::Supervisor;

/// How soon a changed limit on clicks counts.
const LIMITS_EVERY: Duration = Duration::from_millis(500);
/// How often limits are asked for at least while the store fails.
const LIMITS_EVERY_MAX: Duration = Duration::from_secs(4);
/// The check that fails from the start on until the links database has answered once.
const ACCOUNTS: &str = "read_accounts";
/// How old "last used" may be after a crash.
const USED_EVERY: Duration = Duration::from_secs(60);
const SESSIONS_EVERY: Duration = Duration::from_secs(600);

/// Reads whose clicks are limited, which has to be known before the first redirect. A links database that is away
/// does not keep the process from starting: then no link is served until [`start`]'s task has read them.
pub(crate) async fn read_limits(
    accounts: &AccountServices,
    policy: &LinkPolicy,
    ready: &Readiness,
) -> PortResult<()> {
    policy.await_limits();
    match accounts.read_limited().await {
        Ok(limited) => {
            policy.limit(limited);
            Ok(())
        }
        Err(failure) if failure.is_transient() => {
            ready.fail(ACCOUNTS, Impact::Unavailable, failure.to_string());
            warn!(event = event::ENGINE_AWAITED, %failure, "starting without links database");
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

pub(crate) fn start(
    supervisor: &Supervisor,
    accounts: &AccountServices,
    policy: &Arc<LinkPolicy>,
    ready: &Arc<Readiness>,
) {
    let limits = LimitsTask {
        accounts: accounts.clone(),
        policy: policy.clone(),
        ready: ready.clone(),
    };
    supervisor.start("account-limits", |stop| limits.run(stop));
    let api_keys = accounts.api_keys.clone();
    supervisor.start("api-key-use", |stop| async move {
        let mut clock = Ticks::every(USED_EVERY, stop);
        while clock.ticks().await {
            report(api_keys.flush_used().await);
        }
        report(api_keys.flush_used().await);
    });
}

/// Removes expired sessions, unless the clock has jumped: those that it ended are good again when it is right.
pub(crate) fn start_session_purge(
    supervisor: &Supervisor,
    accounts: &AccountServices,
    clock_guard: &Arc<ClockGuard>,
) {
    let (users, clock_guard) = (accounts.users.clone(), clock_guard.clone());
    supervisor.start("session-purge", |stop| async move {
        let mut clock = Ticks::every(SESSIONS_EVERY, stop);
        while clock.ticks().await {
            if let Some(now) = clock_guard.trusted_now() {
                report(users.purge_sessions(now).await.map(drop));
            }
        }
    });
}

/// Keeps the limits on clicks up to date.
struct LimitsTask {
    accounts: AccountServices,
    policy: Arc<LinkPolicy>,
    ready: Arc<Readiness>,
}

impl LimitsTask {
    async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::new(LIMITS_EVERY, LIMITS_EVERY_MAX);
        let mut is_failing = false;
        loop {
            let pause = match self.accounts.read_limited().await {
                Ok(limited) => {
                    self.policy.limit(limited);
                    self.note_read(std::mem::take(&mut is_failing));
                    backoff.reset();
                    LIMITS_EVERY
                }
                Err(failure) => {
                    self.note_failure(&failure, !std::mem::replace(&mut is_failing, true));
                    backoff.next_pause()
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn note_read(&self, has_failed: bool) {
        self.ready.pass(ACCOUNTS);
        if has_failed {
            info!(event = event::STORE_RECOVERED, "account limits read again");
        }
    }

    /// What was read once stays in force; a process that has read nothing yet goes on waiting, and says for what.
    fn note_failure(&self, failure: &PortError, is_first: bool) {
        if self.policy.awaits_limits() {
            self.ready
                .fail(ACCOUNTS, Impact::Unavailable, failure.to_string());
        }
        if is_first {
            warn!(event = event::STORE_FAILED, %failure, "account limits not read");
        }
    }
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
