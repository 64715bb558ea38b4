//! Flushes that reports of one process ask of the consumers of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use curt_core::PortResult;
use curt_core::ports::{ClickSource, FlushChannel};
use tokio_util::sync::CancellationToken;

use super::{FlushRequests, report};

/// Less than reports wait.
const ASK_MAX: Duration = Duration::from_millis(950);
/// Less than those who ask wait.
const ANSWER_MAX: Duration = Duration::from_millis(850);
const RETRY: Duration = Duration::from_secs(1);

/// Whether the consumers of other processes write when they are asked. Cheap to clone; clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct RemoteFreshness(Arc<AtomicBool>);

impl RemoteFreshness {
    /// Whether all of them did when they were asked last.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Serves the requests of this process's reports by asking the consumers of all processes.
pub async fn ask_others(
    requests: FlushRequests,
    channel: Arc<dyn FlushChannel>,
    freshness: RemoteFreshness,
    stop: CancellationToken,
) {
    let server = requests.serve();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = server.asked() => {}
        }
        let Some(request) = server.pending() else {
            continue;
        };
        let is_whole = channel.ask(ASK_MAX).await.unwrap_or_else(|error| {
            report(&error);
            false
        });
        freshness.0.store(is_whole, Ordering::Relaxed);
        server.served(request, is_whole);
    }
}

/// Has the consumers of this process write when another one asks.
pub async fn answer_others(
    requests: FlushRequests,
    channel: Arc<dyn FlushChannel>,
    source: Arc<dyn ClickSource>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let answered = tokio::select! {
            () = stop.cancelled() => return,
            answered = answer_next(&requests, &*channel, &*source) => answered,
        };
        if let Err(error) = answered {
            report(&error);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }
}

async fn answer_next(
    requests: &FlushRequests,
    channel: &dyn FlushChannel,
    source: &dyn ClickSource,
) -> PortResult<()> {
    let asked = channel.asked().await?;
    // Before the flush: what is assigned afterwards may not have been written.
    let partitions = source.assigned();
    let is_whole = requests.flush_all(ANSWER_MAX).await;
    channel.answer(&asked, &partitions, is_whole).await
}
