use std::num::NonZeroUsize;
use std::time::Duration;

/// How a data file is opened. The defaults suit a server; see each field for when to change it.
#[derive(Clone, Debug)]
pub struct SqliteSettings {
    pub access: Access,
    pub synchronous: Synchronous,
    /// Connections for point reads; a read takes whichever is idle.
    pub readers: NonZeroUsize,
    /// Page cache of the writer, in bytes.
    pub writer_cache_bytes: usize,
    /// Page cache of each reader, in bytes.
    pub reader_cache_bytes: usize,
    /// How much of the file each connection maps into memory. The pages are the system's cache, not extra memory, yet
    /// they show in the size of the process, and a failing disk then ends it with a signal.
    pub mmap_bytes: usize,
    /// The write-ahead log is checkpointed, beside the writer, whenever it has grown by this much.
    pub checkpoint_bytes: u64,
    /// The write-ahead log is made to start over at half this size, and cut back to nothing at all of it.
    pub wal_bytes_max: u64,
    /// When nothing was written for this long, the whole log is checkpointed and cut back to nothing, so that the data
    /// file alone holds every commit.
    pub checkpoint_idle: Duration,
    /// How long to wait for another process that is writing.
    pub busy_timeout: Duration,
    /// Most pages that the file may have; `None`: as many as fit on the disk.
    pub pages_max: Option<u32>,
}

/// Who opens the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The one server of this file: holds its lock file for as long as it is open.
    #[default]
    Server,
    /// A short command, which may run beside a server.
    Command,
}

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// When it is on the disk: survives power loss (L-1).
    #[default]
    Full,
    /// When the system has it: survives kill -9, and a power loss may take the last commits. For tests and benches.
    Normal,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self {
            access: Access::default(),
            synchronous: Synchronous::default(),
            readers: NonZeroUsize::new(cores.clamp(2, 4)).unwrap_or(NonZeroUsize::MIN),
            writer_cache_bytes: 32 << 20,
            reader_cache_bytes: 4 << 20,
            mmap_bytes: 0,
            checkpoint_bytes: 8 << 20,
            wal_bytes_max: 64 << 20,
            checkpoint_idle: Duration::from_secs(1),
            busy_timeout: Duration::from_secs(5),
            pages_max: None,
        }
    }
}
