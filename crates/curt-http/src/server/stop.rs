//! The steps of a stop, in their order, as every thread sees them.
//!
//! A client that holds a connection open may send its next request in the moment in which the server closes it, and
//! would get no answer. So a stop first ends connections by their answers (`connection: close`), while new ones are
//! still let in; a balancer sees "not ready" meanwhile. Then nobody is let in, and only connections that stay silent
//! are closed without an answer.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio_util::sync::CancellationToken;

use super::limit::ConnectionLimit;

/// How long a connection may stay silent after listeners have closed. A client that sends requests one after the other
/// has sent the next one by then, and its answer closed the connection.
const SILENCE: Duration = Duration::from_millis(250);
const SILENCE_STEP: Duration = Duration::from_millis(5);
/// How long the kernel may take to finish handshakes that had begun when the listener stopped taking new ones.
const HANDSHAKES: Duration = Duration::from_millis(20);

/// Each token is cancelled after the one before it.
#[derive(Clone, Debug)]
pub(crate) struct StopSteps {
    /// Answers close their connection.
    pub(crate) answers_close: CancellationToken,
    /// Listeners close.
    pub(crate) listeners_close: CancellationToken,
    /// Connections that owe no answer close.
    pub(crate) idle_closes: CancellationToken,
}

impl StopSteps {
    /// Steps that begin with `stop`; [`run`](Self::run) leads through the others.
    pub(crate) fn new(stop: &CancellationToken) -> Self {
        Self {
            answers_close: stop.child_token(),
            listeners_close: CancellationToken::new(),
            idle_closes: CancellationToken::new(),
        }
    }

    /// Steps that all happen with `stop`.
    pub(crate) fn at_once(stop: &CancellationToken) -> Self {
        Self {
            answers_close: stop.clone(),
            listeners_close: stop.clone(),
            idle_closes: stop.clone(),
        }
    }

    /// Waits for the stop and leads through its steps. When it returns, only requests under way are left.
    pub(crate) async fn run(&self, drain_delay: Duration, limit: &Arc<ConnectionLimit>) {
        self.answers_close.cancelled().await;
        tokio::time::sleep(drain_delay).await;
        self.listeners_close.cancel();
        let all_closed = async {
            while limit.open() > 0 {
                tokio::time::sleep(SILENCE_STEP).await;
            }
        };
        let silent = tokio::time::timeout(SILENCE, all_closed).await.is_err();
        tracing::debug!(silent, "listeners closed");
        self.idle_closes.cancel();
    }
}

/// Lets no new client begin a handshake, and waits for those that have begun one: closing the listener would reset them.
pub(crate) async fn end_handshakes(listener: &TcpListener) {
    if let Err(error) = SockRef::from(listener).listen(0) {
        tracing::debug!(%error, "backlog could not be closed");
    }
    tokio::time::sleep(HANDSHAKES).await;
}
