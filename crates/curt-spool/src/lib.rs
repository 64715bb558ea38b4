//! The embedded click stream: files that redirect workers write as memory, and that outlive the process.
//!
//! ```text
//! spool/lock                        one process at a time
//! spool/id                          by what consumers know it
//! spool/dead-letters                which records nobody could read, and why
//! spool/0/00001875…744.seg          a segment of partition 0: a header, records and their texts; named by its first
//!                                   address
//! ```
//! Every byte that a partition ever holds has an address, which only grows, over restarts too; a segment covers a range
//! of them. Each run writes segments of its own and never goes on with one of an earlier run, whose end a crash may
//! have left in disorder.
//!
//! - A **writer** ([`writer`]) stores records into the mapped segment. kill -9 loses none of them: the pages belong
//!   to the kernel. When its segment is full it takes the next one, which is ready, or drops and counts.
//! - The **background threads** ([`background`]) make segments ahead, with all their blocks, and every 100 ms ask the
//!   disk for what was written: that is all that a power cut can take.
//! - A **reader** (`ClickSource::poll`) reads the file as a file and checks every record. What is damaged is skipped,
//!   counted and noted among the dead letters.
//! - What is **committed** is removed with its segment, and wiped in the one that is still written: no visitor's address
//!   outlives the counting.

#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod background;
mod budget;
mod contents;
mod dead_letter_log;
mod dead_letters;
mod frame;
mod frame_reader;
mod identity;
mod late_drops;
mod map;
mod metrics;
mod partition;
mod poll;
mod segment;
mod settings;
mod shared_texts;
mod source;
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use curt_adapter_kit::LockFile;
use curt_core::ports::{ClickWriter, DeadLetters, StreamId};
use curt_core::{ErrorKind, PortError, PortResult, UnixMillis};

pub use metrics::SpoolMetrics;
pub use settings::SpoolSettings;

use background::{BackgroundThreads, ThreadWaker};
use budget::Budget;
use dead_letter_log::DeadLetterLog;
use dead_letters::DeadLetterFile;
use late_drops::LateDrops;
use partition::Partition;
use writer::{DropReason, Writer};

const BACKEND: &str = "spool";
const LOCK: &str = "lock";
const DEAD_LETTERS: &str = "dead-letters";

/// The spool of this process. Dropping it ends its threads, after everything that was written is durable.
#[derive(Debug)]
pub struct Spool {
    /// Before the rest: its threads end first.
    _background: BackgroundThreads,
    core: Arc<Core>,
}

#[derive(Debug)]
struct Core {
    id: StreamId,
    partitions: Vec<Partition>,
    /// The writers that no capture has taken; one per partition that is written in this run.
    writers: Vec<Mutex<Option<Writer>>>,
    budget: Budget,
    dead_letters: DeadLetterLog,
    late_drops: LateDrops,
    segment_waker: Arc<ThreadWaker>,
    _lock: Arc<LockFile>,
}

/// What the spool has counted since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolCounts {
    pub captured: u64,
    /// The next segment was not ready in time.
    pub dropped_late: u64,
    /// The spool had reached its bound.
    pub dropped_full: u64,
    /// The disk gave no more room.
    pub dropped_disk: u64,
    /// Records that cannot be read, by reason.
    pub dead_letters: BTreeMap<&'static str, u64>,
    /// Bytes that the files take.
    pub bytes: u64,
}

impl SpoolCounts {
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_late + self.dropped_full + self.dropped_disk
    }

    fn dropped_by_reason(&self) -> [(&'static str, u64); 3] {
        let count = |drop_reason| match drop_reason {
            DropReason::Late => self.dropped_late,
            DropReason::Full => self.dropped_full,
            DropReason::Disk => self.dropped_disk,
        };
        DropReason::ALL.map(|drop_reason| (drop_reason.name(), count(drop_reason)))
    }
}

impl Spool {
    /// Opens the spool in `folder`, with what earlier runs left there. A disk without room is no error: clicks are
    /// dropped and counted until there is some. `now` is asked for new partitions only.
    pub fn open(
        folder: &Path,
        settings: &SpoolSettings,
        now: UnixMillis,
        metrics: &SpoolMetrics,
    ) -> PortResult<Self> {
        const OP: &str = "open the spool";
        settings.check()?;
        let failed = |error| unusable(OP, folder, error);
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = Arc::new(LockFile::acquire(
            BACKEND,
            "spool",
            &folder.join(LOCK),
            folder,
        )?);
        let letters = DeadLetterFile::new(folder.join(DEAD_LETTERS), settings);
        let mut core = Core {
            id: identity::of(folder),
            partitions: Vec::new(),
            writers: Vec::new(),
            budget: Budget::new(settings),
            dead_letters: DeadLetterLog::new(letters),
            late_drops: LateDrops::default(),
            segment_waker: Arc::default(),
            _lock: Arc::clone(&lock),
        };
        let count = settings.writers.max(partitions_in(folder).map_err(failed)?);
        for number in 0..count {
            let (partition, next_segments) =
                Partition::open(folder, number, now, &core.budget, &core.dead_letters)
                    .map_err(failed)?;
            if number < settings.writers {
                let (writer_state, segment_waker) = (
                    Arc::clone(&partition.writer_state),
                    Arc::clone(&core.segment_waker),
                );
                let writer = Writer::new(
                    writer_state,
                    next_segments,
                    segment_waker,
                    Arc::clone(&lock),
                );
                core.writers.push(Mutex::new(Some(writer)));
            }
            core.partitions.push(partition);
        }
        core.prepare_segments();
        let core = Arc::new(core);
        metrics.watch(&core);
        let background = BackgroundThreads::start(&core, settings.sync_every).map_err(failed)?;
        Ok(Self {
            core,
            _background: background,
        })
    }

    /// Takes the writer of a partition, for one redirect worker. Each can be taken once.
    pub fn take_writer(&self, partition: u32) -> PortResult<Box<dyn ClickWriter>> {
        let writer = self.core.writers.get(partition as usize);
        let writer = writer.and_then(|slot| {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take()
        });
        match writer {
            Some(writer) => Ok(Box::new(writer)),
            None => {
                let detail = format!("partition {partition} has no writer to give, or gave it");
                let op = "capture clicks";
                Err(PortError::new(ErrorKind::Invalid, BACKEND, op, detail))
            }
        }
    }

    #[must_use]
    pub fn counts(&self) -> SpoolCounts {
        self.core.counts()
    }
}

impl DeadLetters for Spool {
    fn put(&self, partition: u32, offset: u64, reason: &'static str, record: &[u8]) {
        self.core
            .dead_letters
            .report(partition, offset, reason, record);
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.core.sync();
    }
}

impl Core {
    fn prepare_segments(&self) {
        for partition in self.partitions.iter().take(self.writers.len()) {
            partition.prepare_segments(&self.budget);
        }
        let late_drops = |partition: &Partition| partition.writer_state.dropped(DropReason::Late);
        self.late_drops
            .report_new(self.partitions.iter().map(late_drops).sum());
    }

    /// A disk that fails is met again at the next tick: what is not durable stays in the page cache.
    fn sync(&self) {
        for partition in &self.partitions {
            if let Err(error) = partition.sync() {
                tracing::warn!(%error, "clicks could not be made durable");
            }
        }
    }

    fn counts(&self) -> SpoolCounts {
        let sum = |count: &dyn Fn(&Partition) -> u64| self.partitions.iter().map(count).sum();
        SpoolCounts {
            captured: sum(&|partition| partition.writer_state.written()),
            dropped_late: sum(&|partition| partition.writer_state.dropped(DropReason::Late)),
            dropped_full: sum(&|partition| partition.writer_state.dropped(DropReason::Full)),
            dropped_disk: sum(&|partition| partition.writer_state.dropped(DropReason::Disk)),
            dead_letters: self.dead_letters.counts(),
            bytes: self.budget.used(),
        }
    }
}

/// How many partitions earlier runs left: a server with fewer workers than before still reads them all.
fn partitions_in(folder: &Path) -> std::io::Result<u32> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number: Option<u32> = name.to_str().and_then(|name| name.parse().ok());
        count = count.max(number.map_or(0, |number| number.saturating_add(1)));
    }
    Ok(count)
}

fn unusable(op: &'static str, path: &Path, error: std::io::Error) -> PortError {
    let detail = format!(
        "{} cannot be used: check that this user may write there",
        path.display()
    );
    PortError::new(ErrorKind::Unavailable, BACKEND, op, detail).with_source(error)
}
