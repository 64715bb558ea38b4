use curt_core::{ErrorKind, PortResult};

use crate::key_layout::Asked;

/// Runs what blocks on a thread that may block.
pub(crate) async fn off_runtime<T: Send + 'static>(
    asked: Asked,
    work: impl FnOnce() -> PortResult<T> + Send + 'static,
) -> PortResult<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            let detail = format!("the task that does the work ended early: {error}");
            Err(asked.error(ErrorKind::Bug, detail))
        })
}
