//! Reads beside the writer: each sees everything that was acknowledged before it began.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use curt_core::{ErrorKind, PortResult};
use rusqlite::Connection;

use super::connection::open_reader;
use super::scanner::Scanner;
use crate::failure::{Failure, FailureScope, port_error};
use crate::settings::SqliteSettings;

pub(super) type ConnectionSlot = Mutex<Option<Connection>>;

/// See the module documentation of the adapter for why look-ups run on the caller's thread.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    lookups: Box<[ConnectionSlot]>,
    next: AtomicUsize,
    /// Long reads have a connection of their own, so that no look-up waits for one.
    scans: Scanner,
    /// The process's own: what keeps it going does not wait for what its clients ask.
    background: Scanner,
}

impl Readers {
    pub(crate) fn open(path: &Path, settings: &SqliteSettings) -> rusqlite::Result<Self> {
        let lookups = (0..NonZeroUsize::get(settings.readers))
            .map(|_| Ok(Mutex::new(Some(open_reader(path, settings)?))))
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self {
            path: path.to_path_buf(),
            lookups,
            next: AtomicUsize::new(0),
            scans: Scanner::new(open_reader(path, settings)?),
            background: Scanner::new(open_reader(path, settings)?),
        })
    }

    /// Runs a read of a few rows at once, on this thread.
    pub(crate) fn look_up<T>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> PortResult<T> {
        let connection_slot = self.idle();
        let connection = connection_slot
            .as_ref()
            .ok_or_else(|| closed().for_call(op))?;
        read(connection).map_err(|error| port_error(op, &self.path, &error))
    }

    /// Runs a read of many rows for a client, on a thread that may block. It ends early when its future is dropped.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> PortResult<T> {
        self.scans.run(op, &self.path, read).await
    }

    /// As [`scan`](Self::scan), for the process's own work, which waits for no client's.
    pub(crate) async fn scan_in_background<T: Send + 'static>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> PortResult<T> {
        self.background.run(op, &self.path, read).await
    }

    /// Closes every connection; reads that come later are refused.
    pub(crate) fn close(&self) {
        for connection_slot in &self.lookups {
            connection_slot
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
        }
        self.scans.close();
        self.background.close();
    }

    fn idle(&self) -> MutexGuard<'_, Option<Connection>> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        for step in 0..self.lookups.len() {
            match self.lookups[start.wrapping_add(step) % self.lookups.len()].try_lock() {
                Ok(connection_slot) => return connection_slot,
                Err(TryLockError::Poisoned(connection_slot)) => {
                    return connection_slot.into_inner();
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
        // All are at work for a few microseconds: queue at one of them.
        self.lookups[start % self.lookups.len()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn closed() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        FailureScope::Call,
        "the data file has been closed",
    )
}
