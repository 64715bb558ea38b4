//! Work that must not stop halfway.

use curt_core::names::event;
use tracing::Instrument;

use crate::problem::{Problem, ProblemCode};

/// Runs work to its end, in a task of its own: a request's future is dropped when its client goes away, and would
/// leave, say, a password changed and the sessions of the old one alive.
pub(crate) async fn run_to_completion<T, E>(
    change: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Into<Problem> + Send + 'static,
{
    #[expect(clippy::disallowed_methods, reason = "its caller waits for it")]
    let task = tokio::spawn(change.in_current_span());
    match task.await {
        Ok(done) => done.map_err(Into::into),
        Err(died) => {
            tracing::error!(event = event::REQUEST_FAILED, %died, "task of a request died");
            Err(Problem::new(ProblemCode::Internal))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_goes_on_when_nobody_waits_for_it() {
        let done = Arc::new(AtomicBool::new(false));
        let change = {
            let done = Arc::clone(&done);
            async move {
                sleep(Duration::from_secs(2)).await;
                done.store(true, Ordering::SeqCst);
                Ok::<_, Problem>(())
            }
        };
        assert!(
            timeout(Duration::from_secs(1), run_to_completion(change))
                .await
                .is_err()
        );
        assert!(!done.load(Ordering::SeqCst));
        sleep(Duration::from_secs(2)).await;
        assert!(done.load(Ordering::SeqCst));
    }
}
