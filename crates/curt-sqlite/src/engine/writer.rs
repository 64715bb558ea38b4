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

use curt_core::limits::COMMIT_GROUP_MAX;
use curt_core::{ErrorKind, PortError, PortResult, lower_priority, names};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::counters::CounterChanges;
use super::readers::closed;
use super::seals::Seals;
use super::wal::{Halted, WalCheckpointer, WalCounters};
use crate::failure::{BACKEND, Failure, FailureScope, port_error};
use crate::schema::Schema;
use crate::settings::SqliteSettings;

/// Calls that wait for the next group; further callers wait for a place in the queue.
const QUEUE_CALLS: usize = 1_024;
const START: &str = "start the writer";

/// What a call may use while it runs.
pub(crate) struct Work<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) counters: &'a mut CounterChanges,
    pub(crate) seals: &'a mut Seals,
}

/// What the writer has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteStats {
    /// Transactions that were committed.
    pub commits: u64,
    /// Calls that they held.
    pub calls: u64,
    /// Checkpoints of the write-ahead log.
    pub checkpoints: u64,
    /// Bytes of the write-ahead log after the last commit.
    pub wal_bytes: u64,
}

#[derive(Debug, Default)]
struct WriterCounters {
    commits: AtomicU64,
    calls: AtomicU64,
    log: Arc<WalCounters>,
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
    Write {
        rows: usize,
        call: Box<dyn Call>,
    },
    /// Between two groups.
    Checkpoint(oneshot::Sender<()>),
    Close,
}

/// The callers' side of the thread.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Message>,
    tally: Arc<WriterCounters>,
}

impl Writer {
    /// `checkpointer` is a second connection to the same file, for the checkpointing thread.
    pub(crate) fn start(
        connection: Connection,
        checkpointer: Connection,
        path: &Path,
        settings: &SqliteSettings,
        schema: &'static Schema,
    ) -> PortResult<(Self, JoinHandle<()>)> {
        let page_bytes: u32 = connection
            .pragma_query_value(None, "page_size", |row| row.get(0))
            .map_err(|error| port_error(START, path, &error))?;
        let (queue, messages) = mpsc::channel(QUEUE_CALLS);
        let tally = Arc::new(WriterCounters::default());
        let thread = WriterThread {
            connection,
            path: path.to_path_buf(),
            halted: Halted::default(),
            tally: Arc::clone(&tally),
        };
        let log = WalCheckpointer::start(
            checkpointer,
            page_bytes.into(),
            path,
            settings,
            Arc::clone(&thread.halted),
            Arc::clone(&tally.log),
            schema.nice,
        )
        .map_err(no_thread)?;
        let handle = std::thread::Builder::new()
            .name(schema.thread.to_owned())
            .spawn(move || {
                lower_priority(schema.nice);
                thread.serve(log, messages);
            })
            .map_err(no_thread)?;
        Ok((Self { queue, tally }, handle))
    }

    /// Runs `write` in the next commit and returns its value once that is durable. `rows` says how much it weighs.
    /// `write` may run more than once, each time from the same state.
    pub(crate) async fn write<T, F>(&self, op: &'static str, rows: usize, write: F) -> PortResult<T>
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

    /// Checkpoints and truncates the log, as far as readers let it.
    pub(crate) async fn checkpoint(&self, op: &'static str) -> PortResult<()> {
        let (reply, answer) = oneshot::channel();
        let sent = self.queue.send(Message::Checkpoint(reply)).await;
        if sent.is_err() || answer.await.is_err() {
            return Err(closed().for_call(op));
        }
        Ok(())
    }

    /// Lets the thread finish what is queued and end. Called again: no change.
    pub(crate) async fn close(&self) {
        if self.queue.send(Message::Close).await.is_err() {
            tracing::debug!(backend = BACKEND, "the writer has ended before");
        }
    }

    pub(crate) fn stats(&self) -> SqliteStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SqliteStats {
            commits: read(&self.tally.commits),
            calls: read(&self.tally.calls),
            checkpoints: read(&self.tally.log.checkpoints),
            wal_bytes: read(&self.tally.log.bytes),
        }
    }
}

fn no_thread(error: std::io::Error) -> PortError {
    Failure::new(
        ErrorKind::Unavailable,
        FailureScope::Call,
        "the system gives no more threads",
    )
    .for_call(START)
    .with_source(error)
}

fn panicked() -> Failure {
    Failure::new(
        ErrorKind::Bug,
        FailureScope::Call,
        "the write broke off; please report this",
    )
}

struct WriterThread {
    connection: Connection,
    path: PathBuf,
    halted: Halted,
    tally: Arc<WriterCounters>,
}

impl WriterThread {
    fn serve(&self, mut log: WalCheckpointer, mut messages: mpsc::Receiver<Message>) {
        let mut carried = None;
        while let Some(message) = carried.take().or_else(|| messages.blocking_recv()) {
            let mut group: Vec<Box<dyn Call>> = Vec::new();
            let mut rows_waiting: usize = 0;
            let mut checkpoint = None;
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Checkpoint(reply) => {
                        checkpoint = Some(reply);
                        break;
                    }
                    Message::Write { rows, call }
                        if group.is_empty()
                            || rows_waiting.saturating_add(rows) <= COMMIT_GROUP_MAX =>
                    {
                        rows_waiting = rows_waiting.saturating_add(rows);
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
            log.checkpoint_if_due(&self.connection);
            if let Some(reply) = checkpoint {
                log.truncate(&self.connection);
                if reply.send(()).is_err() {
                    tracing::trace!(backend = BACKEND, "nobody waits for the checkpoint");
                }
            }
        }
        log.finish(&self.connection);
    }

    fn commit(&self, mut group: Vec<Box<dyn Call>>) {
        while !group.is_empty() {
            let Some(failure) = self.try_commit(&mut group) else {
                return;
            };
            self.roll_back();
            if failure.failure.scope == FailureScope::Call
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
            if failure.failure.scope == FailureScope::Engine {
                self.halted.get_or_init(|| failure.failure);
            }
        }
    }

    /// Commits the whole group and answers it, or changes nothing and says what stood in the way.
    fn try_commit(&self, group: &mut Vec<Box<dyn Call>>) -> Option<GroupFailure> {
        if let Some(failure) = self.halted.get() {
            // Of the write that met the failed sync the outcome is unknown. These have not been tried.
            let mut failure = failure.clone();
            failure.kind = ErrorKind::Unavailable;
            return Some(GroupFailure {
                failure,
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

    fn run(&self, group: &mut [Box<dyn Call>]) -> Option<GroupFailure> {
        let whole = |error| GroupFailure {
            failure: Failure::from_engine(&error, &self.path),
            call: None,
        };
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            return Some(whole(error));
        }
        let mut counters = CounterChanges::default();
        let mut seals = Seals::default();
        for (index, call) in group.iter_mut().enumerate() {
            let mut work = Work {
                connection: &self.connection,
                counters: &mut counters,
                seals: &mut seals,
            };
            let failure = match catch_unwind(AssertUnwindSafe(|| call.run(&mut work))) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => Failure::from_engine(&error, &self.path),
                Err(_) => panicked(),
            };
            return Some(GroupFailure {
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
}

struct GroupFailure {
    failure: Failure,
    /// The call that met it, where it was one.
    call: Option<usize>,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as std_mpsc;

    use super::*;
    use crate::engine::connection::{open_checkpointer, open_writer};
    use crate::schema::MAIN;

    fn start(folder: &Path) -> (Arc<Writer>, JoinHandle<()>) {
        let path = folder.join("curt.db");
        let settings = SqliteSettings::default();
        let connection = open_writer(&path, &settings, &MAIN).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (x INTEGER NOT NULL);
                 CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
            )
            .unwrap();
        let checkpointer = open_checkpointer(&path, &settings).unwrap();
        let (writer, thread) =
            Writer::start(connection, checkpointer, &path, &settings, &MAIN).unwrap();
        (Arc::new(writer), thread)
    }

    fn put(work: &mut Work<'_>, value: Option<i64>) -> rusqlite::Result<()> {
        work.counters.add("puts", 1);
        work.connection
            .execute("INSERT INTO t VALUES (?1)", [value])
            .map(drop)
    }

    /// The numbers in the table and the value of the counter.
    async fn state(writer: &Writer) -> (Vec<i64>, i64) {
        // Totals are written at the end of a group, so the look must not share one with what it looks at.
        writer.write("wait", 1, |_| Ok(())).await.unwrap();
        writer
            .write("look", 1, |work| {
                let mut statement = work.connection.prepare("SELECT x FROM t ORDER BY x")?;
                let rows = statement.query_map((), |row| row.get(0))?;
                let puts = work
                    .connection
                    .query_row("SELECT value FROM counters", (), |row| row.get(0))?;
                Ok((rows.collect::<rusqlite::Result<_>>()?, puts))
            })
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_call_that_fails_or_panics_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, thread) = start(folder.path());
        let spawn = |write: fn(&mut Work<'_>) -> rusqlite::Result<()>| {
            let writer = Arc::clone(&writer);
            tokio::spawn(async move { writer.write("put", 1, write).await })
        };
        // The first call holds the writer until the others are queued, so that they form one group.
        let (release, held) = std_mpsc::channel::<()>();
        let (starts, mut started) = mpsc::channel(1);
        let first = {
            let writer = Arc::clone(&writer);
            tokio::spawn(async move {
                let hold = move |_: &mut Work<'_>| {
                    starts.try_send(()).unwrap();
                    held.recv().unwrap();
                    Ok(())
                };
                writer.write("hold", 1, hold).await
            })
        };
        started.recv().await.unwrap();
        let good = spawn(|work| put(work, Some(1)));
        let refused = spawn(|work| {
            put(work, Some(2))?;
            put(work, None)
        });
        let panics = spawn(|work| {
            put(work, Some(3))?;
            panic!("a mistake in a call")
        });
        let also_good = spawn(|work| put(work, Some(4)));
        tokio::task::yield_now().await;
        release.send(()).unwrap();

        first.await.unwrap().unwrap();
        good.await.unwrap().unwrap();
        also_good.await.unwrap().unwrap();
        for failed in [refused, panics] {
            assert_eq!(failed.await.unwrap().unwrap_err().kind, ErrorKind::Bug);
        }
        assert_eq!(state(&writer).await, (vec![1, 4], 2));
        let stats = writer.stats();
        assert_eq!(
            (stats.commits, stats.calls),
            (4, 5),
            "hold; put and put; wait; look"
        );

        writer.close().await;
        thread.join().unwrap();
        let late = writer.write("put", 1, |work| put(work, Some(5))).await;
        assert_eq!(late.unwrap_err().kind, ErrorKind::Unavailable);
    }

    /// A caller that gives up leaves the others and the thread alone.
    #[tokio::test]
    async fn a_caller_may_go_away() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, thread) = start(folder.path());
        let mut call = Box::pin(writer.write("put", 1, |work| put(work, Some(1))));
        assert!(poll_once(&mut call).await.is_none());
        drop(call);
        assert_eq!(state(&writer).await, (vec![1], 1));
        writer.close().await;
        thread.join().unwrap();
    }

    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }
}
