//! Work on a thread of its own, with a lower priority than those that serve requests.

use std::future::Future;

use curt_core::{names, spawn_low_priority};

/// Returns when the work is done; one that could not begin, or ended early, is told of.
pub(crate) async fn run_on_own_thread<F: Future<Output = ()>>(
    name: &'static str,
    work: impl FnOnce() -> F + Send + 'static,
) {
    let (ended, end) = tokio::sync::oneshot::channel();
    let started = spawn_low_priority(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .thread_name(name)
            .enable_all()
            .build();
        let ran = runtime.map(|runtime| runtime.block_on(work()));
        // The other end waits for it.
        let _waiting = ended.send(ran);
    });
    let failure = match started {
        Ok(()) => match end.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked".to_owned(),
        },
        Err(error) => error.to_string(),
    };
    tracing::error!(
        event = names::event::TASK_FAILED,
        thread = name,
        error = failure,
        "thread ended early"
    );
}
