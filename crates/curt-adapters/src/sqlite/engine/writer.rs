//! The only thread that writes.
//!
//! Calls wait in a bounded queue. The thread takes all that are waiting, runs them in one transaction, and answers them
//! after the commit (L-1): the slower the disk, the larger the groups, and nobody waits for a timer.
//!
//! A call that fails for a reason of its own does not fail the others: the transaction is rolled back, that call gets
//! its error, and the rest run again without it. This is why a call is an `FnMut`. It costs nothing as long as nothing
//! fails, where a savepoint around each call would copy every page that it touches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use curt_core::limits::COMMIT_GROUP_MAX;
use curt_core::{ErrorKind, PortResult, names};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::counters::CounterChanges;
use super::readers::closed;
use crate::sqlite::failure::{BACKEND, Failure, Reach, port_error};
use crate::sqlite::settings::SqliteSettings;

/// Calls that wait for the next group; further callers wait for a place in the queue.
const QUEUE_CALLS: usize = 1_024;
const START: &str = "start the writer";
/// How long cutting the log back may wait for readers; it is tried again later.
const TRUNCATE_PATIENCE: Duration = Duration::from_millis(100);

/// What a call may use while it runs.
pub(in crate::sqlite) struct Work<'a> {
    pub(in crate::sqlite) connection: &'a Connection,
    pub(in crate::sqlite) counters: &'a mut CounterChanges,
}

/// What the writer has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteStats {
    /// Transactions that were committed.
    pub commits: u64,
    /// Calls that they held.
    pub calls: u64,
    /// Times that the write-ahead log was folded into the data file.
    pub checkpoints: u64,
    /// Bytes of the write-ahead log after the last commit.
    pub wal_bytes: u64,
}

#[derive(Debug, Default)]
struct Tally {
    commits: AtomicU64,
    calls: AtomicU64,
    checkpoints: AtomicU64,
    wal_bytes: AtomicU64,
}

trait Call: Send {
    fn run(&mut self, work: &mut Work<'_>) -> rusqlite::Result<()>;
    /// Tells the caller, after the commit.
    fn answer(self: Box<Self>, outcome: Result<(), &Failure>);
}

struct Pending<F, T> {
    op: &'static str,
    write: F,
    value: Option<T>,
    reply: oneshot::Sender<PortResult<T>>,
}

impl<F, T> Call for Pending<F, T>
where
    F: FnMut(&mut Work<'_>) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn run(&mut self, work: &mut Work<'_>) -> rusqlite::Result<()> {
        self.value = Some((self.write)(work)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), &Failure>) {
        let answer = match (outcome, self.value) {
            (Ok(()), Some(value)) => Ok(value),
            (Ok(()), None) => Err(panicked().for_call(self.op)),
            (Err(failure), _) => Err(failure.for_call(self.op)),
        };
        // A caller that went away has made its effect unknown to itself, as a timeout does.
        drop(self.reply.send(answer));
    }
}

enum Message {
    Write { rows: usize, call: Box<dyn Call> },
    Close,
}

/// The callers' side of the thread.
#[derive(Debug)]
pub(in crate::sqlite) struct Writer {
    queue: mpsc::Sender<Message>,
    tally: Arc<Tally>,
}

impl Writer {
    pub(in crate::sqlite) fn start(
        connection: Connection,
        path: &Path,
        settings: &SqliteSettings,
    ) -> PortResult<(Self, JoinHandle<()>)> {
        let page_bytes: u32 = connection
            .pragma_query_value(None, "page_size", |row| row.get(0))
            .map_err(|error| port_error(START, path, &error))?;
        let page_bytes = u64::from(page_bytes);
        let (queue, messages) = mpsc::channel(QUEUE_CALLS);
        let tally = Arc::new(Tally::default());
        let mut thread = WriterThread {
            connection,
            path: path.to_path_buf(),
            busy_timeout: settings.busy_timeout,
            checkpoint_bytes: settings.checkpoint_bytes,
            wal_bytes_max: settings.wal_bytes_max,
            page_bytes,
            cut_tried_at: 0,
            halted: None,
            tally: Arc::clone(&tally),
        };
        let handle = std::thread::Builder::new()
            .name("curt-sqlite".to_owned())
            .spawn(move || thread.serve(messages))
            .map_err(|error| {
                Failure::new(
                    ErrorKind::Unavailable,
                    Reach::Call,
                    "the system gives no more threads",
                )
                .for_call(START)
                .with_source(error)
            })?;
        Ok((Self { queue, tally }, handle))
    }

    /// Runs `write` in the next commit and returns its value once that is durable. `rows` says how much it weighs.
    /// `write` may run more than once, each time from the same state.
    pub(in crate::sqlite) async fn write<T, F>(
        &self,
        op: &'static str,
        rows: usize,
        write: F,
    ) -> PortResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Work<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Pending {
            op,
            write,
            value: None,
            reply,
        });
        let message = Message::Write { rows, call };
        if self.queue.send(message).await.is_err() {
            return Err(closed().for_call(op));
        }
        // The thread answers every call; it can only be gone without an answer when it died.
        answer
            .await
            .unwrap_or_else(|_| Err(panicked().for_call(op)))
    }

    /// Lets the thread finish what is queued and end. Called again: no change.
    pub(in crate::sqlite) async fn close(&self) {
        if self.queue.send(Message::Close).await.is_err() {
            tracing::debug!(backend = BACKEND, "the writer has ended before");
        }
    }

    pub(in crate::sqlite) fn stats(&self) -> SqliteStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SqliteStats {
            commits: read(&self.tally.commits),
            calls: read(&self.tally.calls),
            checkpoints: read(&self.tally.checkpoints),
            wal_bytes: read(&self.tally.wal_bytes),
        }
    }
}

fn panicked() -> Failure {
    Failure::new(
        ErrorKind::Bug,
        Reach::Call,
        "the write broke off; please report this",
    )
}

struct WriterThread {
    connection: Connection,
    path: PathBuf,
    busy_timeout: Duration,
    checkpoint_bytes: u64,
    wal_bytes_max: u64,
    page_bytes: u64,
    /// Pages of the log when cutting it back was last tried.
    cut_tried_at: u64,
    /// Why nothing may be written any more.
    halted: Option<Failure>,
    tally: Arc<Tally>,
}

impl WriterThread {
    fn serve(&mut self, mut messages: mpsc::Receiver<Message>) {
        let mut carried = None;
        while let Some(message) = carried.take().or_else(|| messages.blocking_recv()) {
            let mut group: Vec<Box<dyn Call>> = Vec::new();
            let mut rows_waiting = 0;
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Write { rows, call }
                        if group.is_empty() || rows_waiting + rows <= COMMIT_GROUP_MAX =>
                    {
                        rows_waiting += rows;
                        group.push(call);
                    }
                    // Later callers are refused; those in the queue are still served.
                    Message::Close => messages.close(),
                    too_much => {
                        carried = Some(too_much);
                        break;
                    }
                }
                next = messages.try_recv().ok();
            }
            self.commit(group);
            self.tend_log();
        }
        self.cut_log();
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Call>>) {
        while !group.is_empty() {
            let Some(failure) = self.try_commit(&mut group) else {
                return;
            };
            self.roll_back();
            if failure.failure.reach == Reach::Call
                && let Some(culprit) = failure.call
            {
                let call = group.remove(culprit);
                call.answer(Err(&failure.failure));
                continue;
            }
            tracing::error!(
                event = names::event::STORE_FAILED,
                backend = BACKEND,
                kind = failure.failure.kind.as_str(),
                calls = group.len(),
                "{}",
                failure.failure.detail
            );
            for call in group.drain(..) {
                call.answer(Err(&failure.failure));
            }
            if failure.failure.reach == Reach::Engine {
                self.halted = Some(failure.failure);
            }
        }
    }

    /// Commits the whole group and answers it, or changes nothing and says what stood in the way.
    fn try_commit(&mut self, group: &mut Vec<Box<dyn Call>>) -> Option<Obstacle> {
        if let Some(failure) = &self.halted {
            return Some(Obstacle {
                failure: failure.clone(),
                call: None,
            });
        }
        let outcome = self.run(group);
        if outcome.is_none() {
            self.tally.commits.fetch_add(1, Ordering::Relaxed);
            self.tally
                .calls
                .fetch_add(group.len() as u64, Ordering::Relaxed);
            for call in group.drain(..) {
                call.answer(Ok(()));
            }
        }
        outcome
    }

    fn run(&self, group: &mut [Box<dyn Call>]) -> Option<Obstacle> {
        let whole = |error| Obstacle {
            failure: Failure::from_engine(&error, &self.path),
            call: None,
        };
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            return Some(whole(error));
        }
        let mut counters = CounterChanges::default();
        for (index, call) in group.iter_mut().enumerate() {
            let mut work = Work {
                connection: &self.connection,
                counters: &mut counters,
            };
            let failure = match catch_unwind(AssertUnwindSafe(|| call.run(&mut work))) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => Failure::from_engine(&error, &self.path),
                Err(_) => panicked(),
            };
            return Some(Obstacle {
                failure,
                call: Some(index),
            });
        }
        counters
            .write(&self.connection)
            .and_then(|()| self.execute("COMMIT"))
            .err()
            .map(whole)
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(()).map(drop)
    }

    /// Some failures have rolled back already, others have not.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(
                event = names::event::STORE_FAILED,
                backend = BACKEND,
                %error,
                "the transaction cannot be rolled back"
            );
        }
    }

    /// Keeps the log short, after the callers have been answered. A log that has been folded whole starts over by
    /// itself unless a reader still uses it; only then does it grow past the size at which it is cut back.
    fn tend_log(&mut self) {
        let Some(log) = self.checkpoint("NOOP") else {
            return;
        };
        self.tally
            .wal_bytes
            .store(log.pages * self.page_bytes, Ordering::Relaxed);
        if log.pages < self.cut_tried_at {
            self.cut_tried_at = 0;
        }
        let fold_pages = self.checkpoint_bytes / self.page_bytes;
        let cut_pages = (self.wal_bytes_max / self.page_bytes).max(self.cut_tried_at + fold_pages);
        if log.pages >= cut_pages {
            self.cut_tried_at = log.pages;
            self.cut_log();
        } else if log.pages - log.folded >= fold_pages {
            self.checkpoint("PASSIVE");
            self.tally.checkpoints.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn cut_log(&mut self) {
        let patience = self.connection.busy_timeout(TRUNCATE_PATIENCE);
        self.checkpoint("TRUNCATE");
        self.tally.checkpoints.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = patience.and_then(|()| self.connection.busy_timeout(self.busy_timeout))
        {
            tracing::debug!(%error, "the time to wait for other writers is not as set");
        }
    }

    /// A failed checkpoint loses nothing: the log keeps what the data file does not have yet, and the next one tries
    /// again. A failed sync of the data file is different, see [`Reach::Engine`].
    fn checkpoint(&mut self, mode: &str) -> Option<Log> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Log {
                pages: row.get::<_, i64>(1)?.max(0).unsigned_abs(),
                folded: row.get::<_, i64>(2)?.max(0).unsigned_abs(),
            })
        };
        let outcome = self
            .connection
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_row((), read));
        match outcome {
            Ok(log) => Some(log),
            Err(error) => {
                let failure = Failure::from_engine(&error, &self.path);
                tracing::error!(
                    event = names::event::STORE_FAILED,
                    backend = BACKEND,
                    kind = failure.kind.as_str(),
                    %error,
                    "{}",
                    failure.detail
                );
                if failure.reach == Reach::Engine {
                    self.halted = Some(failure);
                }
                None
            }
        }
    }
}

/// How long the log is, and how much of it the data file has.
struct Log {
    pages: u64,
    folded: u64,
}

struct Obstacle {
    failure: Failure,
    /// The call that met it, where it was one.
    call: Option<usize>,
}
