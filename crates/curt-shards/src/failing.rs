//! Nodes that do not take writes, as far as the last ones tell: new links get keys of the others, and after some failures
//! in a row a circuit breaker spares callers the wait.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use curt_core::{ErrorKind, NodeIndex, PortResult};
use tokio::time::Instant;

/// How long a node that failed is left out, unless it answers earlier; then it is tried again. Several times as long as from
/// one check of health to the next, so that one that stays away is not forgotten in between.
const LEFT_OUT: Duration = Duration::from_secs(20);
/// Failures in a row after which one write in each [`PAUSE`] tries the node, and the others are refused: one failure may
/// be that of a single call.
const OPEN_AFTER: u32 = 2;
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct FailingNodes {
    clock: Instant,
    nodes: Vec<NodeFailures>,
    /// The latest `until` of all that ever were.
    latest: AtomicU64,
}

/// Times are in milliseconds of `clock`.
#[derive(Default)]
struct NodeFailures {
    /// Until when it is left out.
    until: AtomicU64,
    /// Failures since it answered last.
    in_a_row: AtomicU32,
    /// When the next write may try, once the breaker is open.
    retry_at: AtomicU64,
}

impl FailingNodes {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            clock: Instant::now(),
            nodes: (0..nodes).map(|_| NodeFailures::default()).collect(),
            latest: AtomicU64::new(0),
        }
    }

    /// Notes how a write ended.
    pub(crate) fn note<T>(&self, node: NodeIndex, answer: &PortResult<T>) {
        let Some(noted) = self.of(node) else {
            return;
        };
        match answer.as_ref().map_err(|error| error.kind) {
            Ok(_) => {
                noted.in_a_row.store(0, Ordering::Relaxed);
                noted.until.store(0, Ordering::Relaxed);
            }
            Err(ErrorKind::Unavailable | ErrorKind::Timeout) => {
                let until = self.millis(LEFT_OUT);
                noted.until.store(until, Ordering::Relaxed);
                self.latest.fetch_max(until, Ordering::Relaxed);
                noted.retry_at.store(self.millis(PAUSE), Ordering::Relaxed);
                noted.in_a_row.fetch_add(1, Ordering::Relaxed);
            }
            // Nothing about whether the node is there.
            Err(_) => {}
        }
    }

    /// Whether no node has failed for so long that all are tried; asked for every key, so it costs next to nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let latest = self.latest.load(Ordering::Relaxed);
        latest == 0 || latest <= self.millis(Duration::ZERO)
    }

    pub(crate) fn contains(&self, node: NodeIndex) -> bool {
        let until = self.of(node).map(|node| node.until.load(Ordering::Relaxed));
        until.is_some_and(|until| until > 0 && self.millis(Duration::ZERO) < until)
    }

    /// Whether this write may go to the node.
    pub(crate) fn admits(&self, node: NodeIndex) -> bool {
        let Some(noted) = self.of(node) else {
            return true;
        };
        if noted.in_a_row.load(Ordering::Relaxed) < OPEN_AFTER {
            return true;
        }
        let retry_at = noted.retry_at.load(Ordering::Relaxed);
        let (now, next) = (self.millis(Duration::ZERO), self.millis(PAUSE));
        // The others wait for what becomes of the one that is let through.
        let take = |from: u64| {
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            let taken = noted.retry_at.compare_exchange(from, next, set, fetch);
            taken.is_ok()
        };
        now >= retry_at && take(retry_at)
    }

    /// The time in `from_now`.
    fn millis(&self, from_now: Duration) -> u64 {
        let time = self.clock.elapsed() + from_now;
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    fn of(&self, node: NodeIndex) -> Option<&NodeFailures> {
        self.nodes.get(usize::try_from(node.0).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use curt_core::PortError;

    use super::*;

    fn failed(kind: ErrorKind) -> PortResult<()> {
        Err(PortError::new(kind, "test", "write", "on purpose"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_fails_is_left_out_for_a_while_and_until_it_answers() {
        let (nodes, [first, second]) = (FailingNodes::new(2), [0, 1].map(NodeIndex));
        for kind in [ErrorKind::Throttled, ErrorKind::Invalid] {
            nodes.note(first, &failed(kind));
            assert!(!nodes.contains(first) && nodes.is_empty(), "{kind:?}");
        }
        nodes.note(first, &failed(ErrorKind::Unavailable));
        nodes.note(second, &failed(ErrorKind::Timeout));
        assert!(nodes.contains(first) && nodes.contains(second) && !nodes.is_empty());
        nodes.note(second, &Ok(()));
        assert!(!nodes.contains(second));
        tokio::time::advance(LEFT_OUT).await;
        assert!(!nodes.contains(first) && nodes.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_write_in_each_pause_tries_a_node_that_failed_twice() {
        let (nodes, node) = (FailingNodes::new(1), NodeIndex(0));
        nodes.note(node, &failed(ErrorKind::Timeout));
        assert!(nodes.admits(node) && nodes.admits(node), "one failure");
        nodes.note(node, &failed(ErrorKind::Timeout));
        assert!(!nodes.admits(node));
        for _ in 0..3 {
            tokio::time::advance(PAUSE).await;
            assert!(nodes.admits(node));
            assert!(!nodes.admits(node), "a second one in the same pause");
        }
        nodes.note(node, &Ok(()));
        assert!(nodes.admits(node) && nodes.admits(node), "it answered");
    }
}
