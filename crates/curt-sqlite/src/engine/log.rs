//! Keeps the write-ahead log short.
//!
//! What the log holds is folded into the data file by a thread of its own, beside the writer, so that no commit waits
//! for it. A busy writer adds to the log faster than that ends, though, and a log starts over only when it has been
//! folded whole. So past half its largest size the writer folds the rest itself, between two groups, as soon as that is
//! little; and when readers still keep the log from starting over, it is cut back at its largest size.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use curt_core::{lower_priority, names};
use rusqlite::Connection;

use crate::failure::{BACKEND, Failure, Reach};
use crate::settings::SqliteSettings;

/// How long cutting the log back may wait for readers; it is tried again later.
const CUT_PATIENCE: Duration = Duration::from_millis(100);

/// Why nothing may be written any more, once that is so.
pub(super) type Halted = Arc<OnceLock<Failure>>;

/// What has been done to the log.
#[derive(Debug, Default)]
pub(super) struct LogTally {
    pub(super) checkpoints: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// The writer's side.
pub(super) struct LogKeeper {
    page_bytes: u64,
    fold_pages: u64,
    restart_pages: u64,
    cut_pages: u64,
    /// Pages of the log when cutting it back was last tried.
    cut_tried_at: u64,
    busy_timeout: Duration,
    checkpoints: Checkpoints,
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl LogKeeper {
    /// `folding` is the connection of the thread that folds.
    pub(super) fn start(
        folding: Connection,
        page_bytes: u64,
        path: &Path,
        settings: &SqliteSettings,
        halted: Halted,
        tally: Arc<LogTally>,
        nice: i32,
    ) -> std::io::Result<Self> {
        let (wake, wakes) = sync_channel(1);
        let checkpoints = Checkpoints {
            path: path.to_path_buf(),
            halted,
            tally,
            turn: Arc::default(),
        };
        let of_thread = checkpoints.clone();
        let thread = std::thread::Builder::new()
            .name("curt-sqlite-log".to_owned())
            .spawn(move || {
                lower_priority(nice);
                fold_when_woken(&folding, &wakes, &of_thread);
            })?;
        let cut_pages = settings.wal_bytes_max / page_bytes;
        Ok(Self {
            page_bytes,
            fold_pages: settings.checkpoint_bytes / page_bytes,
            restart_pages: cut_pages / 2,
            cut_pages,
            cut_tried_at: 0,
            busy_timeout: settings.busy_timeout,
            checkpoints,
            wake,
            thread,
        })
    }

    /// Called after each commit, when its callers have been answered.
    pub(super) fn tend(&mut self, connection: &Connection) {
        let Some(log) = self.checkpoints.look(connection) else {
            return;
        };
        let tally = &self.checkpoints.tally;
        tally
            .bytes
            .store(log.pages * self.page_bytes, Ordering::Relaxed);
        if log.pages < self.cut_tried_at {
            self.cut_tried_at = 0;
        }
        let rest = log.pages - log.folded;
        let little = rest > 0 && rest <= self.fold_pages / 4;
        if log.pages >= self.cut_pages.max(self.cut_tried_at + self.fold_pages) {
            self.cut_tried_at = log.pages;
            self.cut(connection);
        } else if log.pages >= self.restart_pages && little {
            self.checkpoints.fold(connection);
        } else if rest >= self.fold_pages || (log.pages >= self.restart_pages && rest > 0) {
            // The channel is full when the thread is at work and has been woken again already.
            if self.wake.try_send(()).is_err() {
                tracing::trace!(pages = log.pages, "the log is being folded");
            }
        }
    }

    /// Ends the thread. SQLite folds and removes the log itself when the last connection to the file is closed.
    pub(super) fn finish(self) {
        drop(self.wake);
        if self.thread.join().is_err() {
            tracing::error!(
                event = names::event::TASK_FAILED,
                backend = BACKEND,
                "folding the write-ahead log ended with a panic"
            );
        }
    }

    /// Folds everything and empties the log, if readers let go of it in time.
    pub(super) fn cut(&self, connection: &Connection) {
        let patience = connection.busy_timeout(CUT_PATIENCE);
        self.checkpoints.cut(connection);
        if let Err(error) = patience.and_then(|()| connection.busy_timeout(self.busy_timeout)) {
            tracing::debug!(%error, "the time to wait for other writers is not as set");
        }
    }
}

fn fold_when_woken(connection: &Connection, wakes: &Receiver<()>, checkpoints: &Checkpoints) {
    while wakes.recv().is_ok() {
        checkpoints.fold(connection);
    }
}

/// How long the log is, and how much of it the data file has.
struct Log {
    pages: u64,
    folded: u64,
}

#[derive(Clone)]
struct Checkpoints {
    path: PathBuf,
    halted: Halted,
    tally: Arc<LogTally>,
    /// Two checkpoints at once would refuse each other.
    turn: Arc<Mutex<()>>,
}

impl Checkpoints {
    fn look(&self, connection: &Connection) -> Option<Log> {
        self.pragma(connection, "PRAGMA wal_checkpoint(NOOP)")
    }

    /// Folds as much as readers allow. No change while somebody else is at it.
    fn fold(&self, connection: &Connection) {
        if let Ok(_turn) = self.turn.try_lock() {
            self.run(connection, "PRAGMA wal_checkpoint(PASSIVE)");
        }
    }

    /// Folds everything and empties the log, as soon as nobody else is at it.
    fn cut(&self, connection: &Connection) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.run(connection, "PRAGMA wal_checkpoint(TRUNCATE)");
    }

    fn run(&self, connection: &Connection, sql: &str) {
        if self.pragma(connection, sql).is_some() {
            self.tally.checkpoints.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A failed checkpoint loses nothing: the log keeps what the data file does not have yet, and the next one tries
    /// again. Only a failed sync is the end, see [`Reach::Engine`].
    fn pragma(&self, connection: &Connection, sql: &str) -> Option<Log> {
        let outcome = connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_row((), |row| {
                Ok(Log {
                    pages: row.get::<_, i64>(1)?.max(0).unsigned_abs(),
                    folded: row.get::<_, i64>(2)?.max(0).unsigned_abs(),
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
                if failure.reach == Reach::Engine {
                    self.halted.get_or_init(|| failure);
                }
            })
            .ok()
    }
}
