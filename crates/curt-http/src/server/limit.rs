//! How many connections may be open at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::gauge::Gauge;

/// The bound over all threads. Touched when a connection comes or goes, never per request.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    open: AtomicUsize,
    max: usize,
    gauge: Gauge,
}

impl ConnectionLimit {
    pub(super) fn new(max: usize, gauge: Gauge) -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(0),
            max,
            gauge,
        })
    }

    /// Returns how many connections are open now.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// `None` when the limit is reached.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Permit> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        if before >= self.max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.gauge.inc();
        Some(Permit(Arc::clone(self)))
    }
}

/// One open connection. It goes where the socket goes, and counts until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<ConnectionLimit>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.gauge.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_connection_makes_room_for_another() {
        let limit = ConnectionLimit::new(2, Gauge::default());
        let first = limit.admit().unwrap();
        let _second = limit.admit().unwrap();
        assert!(limit.admit().is_none());
        drop(first);
        assert!(limit.admit().is_some());
        assert_eq!(limit.gauge.get(), 1);
    }
}
