//! Reads of many rows: one at a time, on a connection of their own. They wait without a thread; whoever stops waiting
//! leaves the queue, and a read whose caller has left ends within the next few thousand steps of SQLite.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use curt_core::{ErrorKind, PortResult, spawn_low_priority};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::readers::{ConnectionSlot, closed};
use crate::failure::{Failure, FailureScope, port_error};

/// Running and waiting. Callers bound themselves, by user; this is for what they forget.
const READS_MAX: usize = 512;
/// Steps of SQLite's machine between two looks at whether the caller is still there: well under a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 2_000;

#[derive(Debug)]
pub(super) struct Scanner {
    connection_slot: Arc<ConnectionSlot>,
    turn: Arc<Semaphore>,
    places: Semaphore,
    is_closed: Arc<AtomicBool>,
}

impl Scanner {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection_slot: Arc::new(Mutex::new(Some(connection))),
            turn: Arc::new(Semaphore::new(1)),
            places: Semaphore::new(READS_MAX),
            is_closed: Arc::default(),
        }
    }

    /// [`ErrorKind::Throttled`] when too many are waiting.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        op: &'static str,
        path: &Path,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> PortResult<T> {
        let _place = self
            .places
            .try_acquire()
            .map_err(|_| overloaded().for_call(op))?;
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        let turn = turn.map_err(|_| closed().for_call(op))?;
        let path = path.to_path_buf();
        let left = SetOnDrop::default();
        let scan = Scan {
            connection_slot: Arc::clone(&self.connection_slot),
            ends: [Arc::clone(&left.0), Arc::clone(&self.is_closed)],
            _turn: turn,
        };
        let (sender, done) = oneshot::channel();
        let work = move || {
            let result = match scan.run(read) {
                None => Err(closed().for_call(op)),
                Some(read) => read.map_err(|error| port_error(op, &path, &error)),
            };
            // The caller may have left.
            let _sent = sender.send(result);
        };
        spawn_low_priority("curt-scan", work)
            .map_err(|error| no_thread().for_call(op).with_source(error))?;
        done.await
            .unwrap_or_else(|error| Err(unfinished().for_call(op).with_source(error)))
    }

    /// Ends the read that runs, refuses those that wait and those that come, and closes the connection.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.turn.close();
        self.connection_slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

/// One read that has its turn.
struct Scan {
    connection_slot: Arc<ConnectionSlot>,
    /// Each ends the read once it is set.
    ends: [Arc<AtomicBool>; 2],
    _turn: OwnedSemaphorePermit,
}

impl Scan {
    /// `None` when nobody waits for the outcome any more.
    fn run<T>(
        self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Option<rusqlite::Result<T>> {
        let mut connection_slot = self
            .connection_slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let connection = connection_slot.as_mut()?;
        let ends = self.ends.clone();
        let is_over = move || ends.iter().any(|end| end.load(Ordering::Relaxed));
        if is_over() {
            return None;
        }
        let look = move || {
            // A low priority alone does not help: the scheduler lets a thread use up its milliseconds, and every
            // thread that a request passes through would wait for them.
            std::thread::yield_now();
            is_over()
        };
        // Replaces that of the read before, whose caller may have left at its end.
        let watched = connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(look));
        Some(watched.and_then(|()| read(connection)))
    }
}

/// Tells the thread that works for a caller when the caller has left.
#[derive(Default)]
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn overloaded() -> Failure {
    Failure::new(
        ErrorKind::Throttled,
        FailureScope::Call,
        "too many long reads are waiting: try again later",
    )
}

fn no_thread() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        FailureScope::Call,
        "no thread for a long read: the system refused one",
    )
}

fn unfinished() -> Failure {
    Failure::new(
        ErrorKind::Bug,
        FailureScope::Call,
        "the read did not finish; please report this",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    /// Far more than a look takes, also on a machine that is busy.
    const SOON: Duration = Duration::from_secs(20);

    fn scanner() -> Arc<Scanner> {
        Arc::new(Scanner::new(Connection::open_in_memory().unwrap()))
    }

    fn endless(connection: &Connection) -> rusqlite::Result<i64> {
        connection.query_row(ENDLESS, (), |row| row.get(0))
    }

    async fn number(scanner: &Scanner) -> PortResult<i64> {
        let read = |connection: &Connection| connection.query_row("SELECT 7", (), |row| row.get(0));
        scanner.run("count", Path::new("test.db"), read).await
    }

    /// Starts a read that would never end, and returns once SQLite is at it.
    async fn start_endless(scanner: &Arc<Scanner>) -> tokio::task::JoinHandle<PortResult<i64>> {
        let (begun, has_begun) = mpsc::channel();
        let scanner = Arc::clone(scanner);
        let reading = tokio::spawn(async move {
            let read = move |connection: &Connection| {
                begun.send(()).unwrap();
                endless(connection)
            };
            scanner.run("count", Path::new("test.db"), read).await
        });
        tokio::task::spawn_blocking(move || has_begun.recv_timeout(SOON).unwrap())
            .await
            .unwrap();
        reading
    }

    #[tokio::test]
    async fn a_read_whose_caller_left_ends_and_the_next_one_does_not_notice() {
        let scanner = scanner();
        for _ in 0..3 {
            let reading = start_endless(&scanner).await;
            reading.abort();
            let next = timeout(SOON, number(&scanner)).await;
            assert_eq!(next.expect("the endless read goes on").unwrap(), 7);
        }
    }

    #[tokio::test]
    async fn those_who_stop_waiting_leave_the_queue_and_it_has_an_end() {
        let scanner = scanner();
        let reading = start_endless(&scanner).await;
        for _ in 0..2 * READS_MAX {
            let waiting = timeout(Duration::ZERO, number(&scanner)).await;
            assert!(waiting.is_err(), "it waits, and gives up");
        }
        let mut waiting = Vec::new();
        for _ in 1..READS_MAX {
            let mut read = Box::pin(number(&scanner));
            assert!(
                timeout(Duration::ZERO, &mut read).await.is_err(),
                "it waits"
            );
            waiting.push(read);
        }
        let refused = timeout(SOON, number(&scanner)).await.unwrap();
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Throttled);
        reading.abort();
        for read in waiting {
            assert_eq!(timeout(SOON, read).await.unwrap().unwrap(), 7);
        }
    }

    #[tokio::test]
    async fn closing_waits_for_no_read() {
        let scanner = scanner();
        let reading = start_endless(&scanner).await;
        let waiting = tokio::spawn({
            let scanner = Arc::clone(&scanner);
            async move { number(&scanner).await }
        });
        tokio::task::yield_now().await;
        let closing = Arc::clone(&scanner);
        let closed = tokio::task::spawn_blocking(move || closing.close());
        timeout(SOON, closed).await.expect("it waits").unwrap();
        for ended in [reading, waiting] {
            let ended = timeout(SOON, ended).await.unwrap().unwrap();
            assert_eq!(ended.unwrap_err().kind, ErrorKind::Unavailable);
        }
        let late = number(&scanner).await;
        assert_eq!(late.unwrap_err().kind, ErrorKind::Unavailable);
    }
}
