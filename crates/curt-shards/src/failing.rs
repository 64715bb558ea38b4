//! Nodes that do not take writes, as far as the last ones tell: new links get keys of the others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use curt_core::{ErrorKind, NodeIndex, PortResult};
use tokio::time::Instant;

/// How long a node that failed is left out, unless it answers earlier; then it is tried again. Several times as long as from
/// one check of health to the next, so that one that stays away is not forgotten in between.
const LEFT_OUT: Duration = Duration::from_secs(20);

pub(crate) struct FailingNodes {
    clock: Instant,
    /// Per node, until when it is left out, in milliseconds of `clock`.
    until: Vec<AtomicU64>,
    /// The latest of all that ever were.
    latest: AtomicU64,
}

impl FailingNodes {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            clock: Instant::now(),
            until: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            latest: AtomicU64::new(0),
        }
    }

    /// Notes how a write ended.
    pub(crate) fn note<T>(&self, node: NodeIndex, answer: &PortResult<T>) {
        let until = match answer {
            Ok(_) => 0,
            Err(error) => match error.kind {
                ErrorKind::Unavailable | ErrorKind::Timeout => self.millis(LEFT_OUT),
                // Nothing about whether the node is there.
                _ => return,
            },
        };
        if let Some(noted) = self.of(node) {
            noted.store(until, Ordering::Relaxed);
            self.latest.fetch_max(until, Ordering::Relaxed);
        }
    }

    /// Whether no node has failed for so long that all are tried; asked for every key, so it costs next to nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let latest = self.latest.load(Ordering::Relaxed);
        latest == 0 || latest <= self.millis(Duration::ZERO)
    }

    pub(crate) fn contains(&self, node: NodeIndex) -> bool {
        let until = self.of(node).map(|until| until.load(Ordering::Relaxed));
        until.is_some_and(|until| until > 0 && self.millis(Duration::ZERO) < until)
    }

    /// The time in `from_now`.
    fn millis(&self, from_now: Duration) -> u64 {
        let time = self.clock.elapsed() + from_now;
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    fn of(&self, node: NodeIndex) -> Option<&AtomicU64> {
        self.until.get(usize::try_from(node.0).ok()?)
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
}
