//! Keeps the write-ahead log short.
//!
//! A thread of its own checkpoints the log beside the writer, so that no commit waits for it. A busy writer adds to the
//! log faster than a checkpoint ends, though, and a log starts over only when all of it has been checkpointed. So past
//! half its largest size the writer checkpoints the rest itself, between two groups, as soon as that is little; and when
//! readers still keep the log from starting over, it is truncated at its largest size.
//!
//! When nothing has been written for a while, the thread checkpoints everything and truncates the log: the data file of
//! a quiet server is whole by itself, and a copy of it has every commit.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use curt_core::{lower_priority, names};
use rusqlite::Connection;

use crate::failure::{BACKEND, Failure, FailureScope};
use crate::settings::SqliteSettings;

/// How long a truncating checkpoint may wait for readers; it is tried again later.
const TRUNCATE_TIMEOUT: Duration = Duration::from_millis(100);
/// Longest pause between tries to truncate the log of a file that nobody writes to.
const IDLE_RETRY_MAX: Duration = Duration::from_secs(60);

/// Why nothing may be written any more, once that is so.
pub(super) type Halted = Arc<OnceLock<Failure>>;

/// Checkpoints so far, the size of the log, and how often something was written.
#[derive(Debug, Default)]
pub(super) struct WalCounters {
    pub(super) checkpoints: AtomicU64,
    pub(super) bytes: AtomicU64,
    writes: AtomicU64,
    /// Whether the log was truncated and nothing written since: then the thread waits without a timeout.
    is_truncated: AtomicBool,
}

/// Why the thread is woken.
enum Wake {
    /// The log has grown enough for a checkpoint.
    CheckpointDue,
    /// It is no longer empty.
    Written,
}

/// The writer's side.
pub(super) struct WalCheckpointer {
    page_bytes: u64,
    checkpoint_pages: u64,
    restart_pages: u64,
    truncate_pages: u64,
    /// Pages of the log when truncating it was last tried.
    truncate_tried_at: u64,
    busy_timeout: Duration,
    checkpoints: CheckpointRunner,
    wake: SyncSender<Wake>,
    thread: JoinHandle<()>,
}

impl WalCheckpointer {
    /// `checkpointer` is the connection of the checkpointing thread.
    pub(super) fn start(
        checkpointer: Connection,
        page_bytes: u64,
        path: &Path,
        settings: &SqliteSettings,
        halted: Halted,
        counters: Arc<WalCounters>,
        nice: i32,
    ) -> std::io::Result<Self> {
        let (wake, wakes) = sync_channel(1);
        let checkpoints = CheckpointRunner {
            path: path.to_path_buf(),
            halted,
            counters,
            turn: Arc::default(),
        };
        let (of_thread, idle) = (checkpoints.clone(), settings.checkpoint_idle);
        let thread = std::thread::Builder::new()
            .name("curt-sqlite-wal".to_owned())
            .spawn(move || {
                lower_priority(nice);
                checkpoint_when_woken(&checkpointer, &wakes, &of_thread, idle);
            })?;
        let truncate_pages = settings.wal_bytes_max / page_bytes;
        Ok(Self {
            page_bytes,
            checkpoint_pages: settings.checkpoint_bytes / page_bytes,
            restart_pages: truncate_pages / 2,
            truncate_pages,
            truncate_tried_at: 0,
            busy_timeout: settings.busy_timeout,
            checkpoints,
            wake,
            thread,
        })
    }

    /// Called after each commit, when its callers have been answered.
    pub(super) fn checkpoint_if_due(&mut self, connection: &Connection) {
        let Some(log) = self.checkpoints.read_wal_size(connection) else {
            return;
        };
        let counters = &self.checkpoints.counters;
        counters
            .bytes
            .store(log.pages * self.page_bytes, Ordering::Relaxed);
        counters.writes.fetch_add(1, Ordering::Relaxed);
        if log.pages > 0 && counters.is_truncated.swap(false, Ordering::Relaxed) {
            self.wake(Wake::Written);
        }
        if log.pages < self.truncate_tried_at {
            self.truncate_tried_at = 0;
        }
        let rest = log.pages - log.checkpointed;
        let little = rest > 0 && rest <= self.checkpoint_pages / 4;
        if log.pages
            >= self
                .truncate_pages
                .max(self.truncate_tried_at + self.checkpoint_pages)
        {
            self.truncate_tried_at = log.pages;
            self.truncate(connection);
        } else if log.pages >= self.restart_pages && little {
            self.checkpoints.checkpoint_passively(connection);
        } else if rest >= self.checkpoint_pages || (log.pages >= self.restart_pages && rest > 0) {
            self.wake(Wake::CheckpointDue);
        }
    }

    /// The channel is full when the thread is at work and has been woken again already.
    fn wake(&self, wake: Wake) {
        if self.wake.try_send(wake).is_err() {
            tracing::trace!("checkpoint under way");
        }
    }

    /// Ends the thread and truncates the log. SQLite itself does so, and removes it, only when the last connection to the
    /// file is closed, which is not this one where a command ends beside a server.
    pub(super) fn finish(self, connection: &Connection) {
        if self.checkpoints.halted.get().is_none() {
            self.truncate(connection);
        }
        drop(self.wake);
        if self.thread.join().is_err() {
            tracing::error!(
                event = names::event::TASK_FAILED,
                backend = BACKEND,
                "checkpoint thread panicked"
            );
        }
    }

    /// Checkpoints everything and empties the log, if readers let go of it in time.
    pub(super) fn truncate(&self, connection: &Connection) {
        let shortened = connection.busy_timeout(TRUNCATE_TIMEOUT);
        self.checkpoints.truncate(connection);
        if let Err(error) = shortened.and_then(|()| connection.busy_timeout(self.busy_timeout)) {
            tracing::debug!(%error, "busy timeout not restored");
        }
    }
}

fn checkpoint_when_woken(
    connection: &Connection,
    wakes: &Receiver<Wake>,
    checkpoints: &CheckpointRunner,
    idle: Duration,
) {
    let writes = || checkpoints.counters.writes.load(Ordering::Relaxed);
    let (mut pause, mut seen) = (idle, writes());
    loop {
        match wakes.recv_timeout(pause) {
            Ok(Wake::CheckpointDue) => checkpoints.checkpoint_passively(connection),
            Ok(Wake::Written) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) if writes() == seen => {
                pause = match checkpoints.truncate_idle(connection) {
                    true => Duration::MAX,
                    // A reader is in the way, or the disk is full: both may take long.
                    false => (pause * 2).min(IDLE_RETRY_MAX),
                };
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        (pause, seen) = (idle, writes());
    }
}

/// Size of the log, and how much of it the data file has.
struct WalSize {
    /// Whether readers or the writer kept the checkpoint from its end.
    is_busy: bool,
    pages: u64,
    checkpointed: u64,
}

#[derive(Clone)]
struct CheckpointRunner {
    path: PathBuf,
    halted: Halted,
    counters: Arc<WalCounters>,
    /// Two checkpoints at once would refuse each other.
    turn: Arc<Mutex<()>>,
}

impl CheckpointRunner {
    fn read_wal_size(&self, connection: &Connection) -> Option<WalSize> {
        self.run_pragma(connection, "PRAGMA wal_checkpoint(NOOP)")
    }

    /// Checkpoints as much as readers allow. No change while another checkpoint runs.
    fn checkpoint_passively(&self, connection: &Connection) {
        if let Ok(_turn) = self.turn.try_lock() {
            self.run(connection, "PRAGMA wal_checkpoint(PASSIVE)");
        }
    }

    /// Checkpoints everything and empties the log, as soon as no other checkpoint runs.
    fn truncate(&self, connection: &Connection) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.run(connection, "PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// Truncates the log of a file that is not written to, and returns whether nothing is left in it. Waits for
    /// nobody: the passive checkpoint does the work beside a writer, so that what follows takes its lock for a moment
    /// only, and a reader that stands in the way is left alone.
    fn truncate_idle(&self, connection: &Connection) -> bool {
        let Ok(_turn) = self.turn.try_lock() else {
            return false;
        };
        // Before the checkpoint: a commit beside it must wake the thread again.
        self.counters.is_truncated.store(true, Ordering::Relaxed);
        let is_truncated = connection.busy_timeout(Duration::ZERO).is_ok()
            && self
                .run(connection, "PRAGMA wal_checkpoint(PASSIVE)")
                .is_some()
            && self
                .run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
                .is_some_and(|log| !log.is_busy && log.pages == 0);
        if is_truncated {
            self.counters.bytes.store(0, Ordering::Relaxed);
        } else {
            self.counters.is_truncated.store(false, Ordering::Relaxed);
        }
        is_truncated
    }

    fn run(&self, connection: &Connection, sql: &str) -> Option<WalSize> {
        let log = self.run_pragma(connection, sql)?;
        self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
        Some(log)
    }

    /// A failed checkpoint loses nothing: the log keeps what the data file does not have yet, and the next one tries
    /// again. Only a failed sync is the end, see [`FailureScope::Engine`].
    fn run_pragma(&self, connection: &Connection, sql: &str) -> Option<WalSize> {
        let outcome = connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_row((), |row| {
                Ok(WalSize {
                    is_busy: row.get::<_, i64>(0)? != 0,
                    pages: row.get::<_, i64>(1)?.max(0).unsigned_abs(),
                    checkpointed: row.get::<_, i64>(2)?.max(0).unsigned_abs(),
                })
            })
        });
        outcome
            .map_err(|error| {
                let failure = Failure::from_engine(&error, &self.path);
                tracing::error!(
                    event = names::event::STORE_FAILED,
                    backend = BACKEND,
                    kind = failure.kind.as_str(),
                    %error,
                    "{}",
                    failure.detail
                );
                if failure.scope == FailureScope::Engine {
                    self.halted.get_or_init(|| failure);
                }
            })
            .ok()
    }
}
