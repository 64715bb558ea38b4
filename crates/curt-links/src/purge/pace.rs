//! How often a batch job looks for work: at once after a full batch, but not faster than the rate; after a long nap
//! otherwise; soon after an error. Naps vary by a tenth, so that many processes do not come at the same moment.

use std::time::Duration;

use curt_core::PortResult;
use rand::RngExt;
use tokio_util::sync::CancellationToken;

use super::{PurgeSettings, report};

const NAP_AFTER_ERROR_MAX: Duration = Duration::from_secs(5);

/// What one batch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// As much as fits in a batch: there may be more.
    Full,
    /// Everything that there was.
    Short,
}

impl Pass {
    /// A full batch of which nothing could be done is treated as short: asking again at once would spin.
    pub(super) fn of(found: usize, done: usize, batch: usize) -> Self {
        if found >= batch && done > 0 {
            Self::Full
        } else {
            Self::Short
        }
    }
}

pub(super) struct Pace {
    between_batches: Duration,
    nap: Duration,
}

impl Pace {
    pub(super) fn new(settings: &PurgeSettings) -> Self {
        let batches_per_second = f64::from(settings.rate_max) / settings.batch as f64;
        Self {
            between_batches: Duration::from_secs_f64(1.0 / batches_per_second),
            nap: settings.every,
        }
    }

    pub(super) async fn keep<F>(&self, stop: &CancellationToken, mut pass: impl FnMut() -> F)
    where
        F: Future<Output = PortResult<Pass>>,
    {
        while !stop.is_cancelled() {
            let nap = match pass().await {
                Ok(Pass::Full) => self.between_batches,
                Ok(Pass::Short) => varied(self.nap),
                Err(failure) => {
                    report(&failure);
                    varied(self.nap.min(NAP_AFTER_ERROR_MAX))
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
    }
}

fn varied(nap: Duration) -> Duration {
    nap.mul_f64(rand::rng().random_range(0.9..1.1))
}
