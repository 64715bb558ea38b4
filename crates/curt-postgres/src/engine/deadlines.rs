//! Work with an end: a deadline, or the moment at which it is known that the host answers nobody.

use std::pin::pin;
use std::time::Duration;

use curt_adapter_kit::Effect;
use curt_core::PortResult;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Error;

use super::lane::Lane;
use super::{Engine, Outcome};
use crate::failure::too_late;

/// How long a call may take before it is asked whether its host still lets anybody in.
const SILENT_AFTER: Duration = Duration::from_secs(1);

impl Engine {
    /// How long adding a window of clicks may take.
    pub(crate) fn flush_timeout(&self) -> Duration {
        self.flush_timeout
    }

    /// Waits no longer than a flush may take. The inner error is the driver's, the outer one ours.
    pub(crate) async fn within_flush_timeout<T>(
        &self,
        op: &'static str,
        effect: Effect,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Outcome<T> {
        let until = (&*self.background, Instant::now() + self.flush_timeout);
        self.within(op, effect, until, work).await
    }

    /// Waits as long as the host lets anybody in.
    pub(crate) async fn without_deadline<T>(
        &self,
        op: &'static str,
        work: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        let mut work = pin!(work);
        let route = self.background.route();
        let epoch = route.epoch();
        loop {
            tokio::select! {
                done = timeout(SILENT_AFTER, &mut work) => match done {
                    Ok(done) => return done,
                    Err(_) => route.search(),
                },
                () = route.leave(epoch) => {
                    return Err(too_late(op, &self.address, Effect::Unknown));
                }
            }
        }
    }

    /// Waits until the deadline, or until it is known that the host answers nobody.
    pub(super) async fn within<T>(
        &self,
        op: &'static str,
        effect: Effect,
        (lane, deadline): (&Lane, Instant),
        work: impl Future<Output = Result<T, Error>>,
    ) -> Outcome<T> {
        let mut work = pin!(work);
        let route = lane.route();
        let epoch = route.epoch();
        let silent_at = deadline.min(Instant::now() + SILENT_AFTER);
        if let Ok(done) = timeout_at(silent_at, &mut work).await {
            return Ok(done);
        }
        route.search();
        tokio::select! {
            done = timeout_at(deadline, work) => {
                done.map_err(|_| too_late(op, &self.address, effect))
            }
            () = route.leave(epoch) => Err(too_late(op, &self.address, effect)),
        }
    }
}
