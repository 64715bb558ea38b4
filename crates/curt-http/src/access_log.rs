//! The access log: what was asked for, by whom, and what was answered.
//!
//! Whoever answers puts an entry into a bounded queue and goes on; somebody else writes it. When the queue is full the
//! entry is dropped and counted: no request waits for a log.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use curt_core::{OwnerId, UnixMillis};
use prometheus_client::metrics::counter::Counter;

/// Entries that wait to be written.
const QUEUE_ENTRIES: usize = 8_192;
/// Of texts that clients choose, so much is logged.
const TEXT_BYTES_MAX: usize = 256;

/// Which answers are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessScope {
    /// Those with a status from 400 on.
    Errors,
    All,
}

/// One answered request. It has no query: that may hold credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessEntry {
    pub at: UnixMillis,
    pub method: &'static str,
    pub path: Box<str>,
    pub status: u16,
    /// The visitor's, behind trusted proxies too.
    pub address: IpAddr,
    /// Who was signed in, or whose API key it was.
    pub user: Option<OwnerId>,
    pub elapsed: Duration,
    pub agent: Box<str>,
    pub referrer: Box<str>,
    /// Requests that redirect workers answer have none.
    pub request_id: Option<Box<str>>,
}

/// The side of whoever answers.
#[derive(Debug)]
pub struct AccessLog {
    scope: AccessScope,
    queue: SyncSender<AccessEntry>,
    dropped: Counter,
}

impl AccessLog {
    /// Returns the log, and where its entries are taken from to be written. `dropped` counts those that were not.
    #[must_use]
    pub fn new(scope: AccessScope, dropped: Counter) -> (Arc<Self>, Receiver<AccessEntry>) {
        let (queue, entries) = sync_channel(QUEUE_ENTRIES);
        let log = Self {
            scope,
            queue,
            dropped,
        };
        (Arc::new(log), entries)
    }

    /// Returns whether answers with this status are logged.
    pub(crate) fn wants(&self, status: u16) -> bool {
        self.scope == AccessScope::All || status >= 400
    }

    /// Never waits.
    pub(crate) fn record(&self, entry: AccessEntry) {
        if self.queue.try_send(entry).is_err() {
            self.dropped.inc();
        }
    }
}

/// Returns what is logged of a text that a client chose.
pub(crate) fn shortened(text: &[u8]) -> Box<str> {
    let bytes = text.get(..TEXT_BYTES_MAX).unwrap_or(text);
    String::from_utf8_lossy(bytes).into()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let dropped = Counter::default();
        let (log, entries) = AccessLog::new(AccessScope::Errors, dropped.clone());
        assert!(log.wants(404) && log.wants(500) && !log.wants(302));
        for _ in 0..QUEUE_ENTRIES + 3 {
            log.record(AccessEntry {
                at: UnixMillis(0),
                method: "GET",
                path: "/".into(),
                status: 404,
                address: Ipv4Addr::LOCALHOST.into(),
                user: None,
                elapsed: Duration::ZERO,
                agent: shortened(&[b'a'; 300]),
                referrer: "".into(),
                request_id: None,
            });
        }
        assert_eq!(dropped.get(), 3);
        assert_eq!(entries.try_iter().count(), QUEUE_ENTRIES);
    }

    #[test]
    fn texts_of_clients_are_cut() {
        assert_eq!(shortened(&[b'a'; 300]).len(), 256);
        assert_eq!(&*shortened(b"curl/8 \xff"), "curl/8 \u{fffd}");
    }
}
