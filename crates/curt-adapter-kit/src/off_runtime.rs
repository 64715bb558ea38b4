use curt_core::{ErrorKind, PortError, PortResult};

/// Runs blocking work on a thread that may block. Work that panics is a [`ErrorKind::Bug`] of `backend` and `op`.
pub async fn off_runtime<T: Send + 'static>(
    backend: &'static str,
    op: &'static str,
    work: impl FnOnce() -> PortResult<T> + Send + 'static,
) -> PortResult<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            let detail = format!("the task that does the work ended early: {error}");
            Err(PortError::new(ErrorKind::Bug, backend, op, detail))
        })
}
