use std::time::Duration;

use curt_core::PortError;
use tokio::time::Instant;

use crate::failure::is_rolled_back;

const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Decides whether a call is made again that the engine rolled back as a whole because others were in the way: engines that
/// spread tables over servers do so at any time. Any other failure is the caller's.
pub(super) struct Retries {
    deadline: Instant,
    pause: Duration,
}

impl Retries {
    pub(super) fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            pause: PAUSE_FIRST,
        }
    }

    /// Waits a little, if the call is to be made again. Longer each time, and never as long as others.
    pub(super) async fn is_due(&mut self, failure: &PortError) -> bool {
        let pause = self.pause.mul_f64(rand::random_range(0.5..1.5));
        if !is_rolled_back(failure) || Instant::now() + pause >= self.deadline {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}
