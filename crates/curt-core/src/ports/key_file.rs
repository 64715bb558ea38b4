use async_trait::async_trait;

use crate::error::PortResult;
use crate::key::Key;

/// Files of consecutive fixed-width keys on a file system or an object store.
#[async_trait]
pub trait KeyFile: Send + Sync {
    /// Starts a file that nobody can see until it is published. A name that is published already: `Invalid`.
    /// An unfinished file of that name, left by a crash: started anew.
    async fn create(&self, name: &str, layout: KeyFileLayout)
    -> PortResult<Box<dyn KeyFileWriter>>;

    /// Layout and length of a published file. Absent, or only being written: `None`.
    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>>;

    /// Up to `count` keys from position `first` on, counted in keys; fewer at the end of the file, none past it.
    /// Whatever was read is checked against the block checksums first: a truncated, extended or altered file is
    /// `Corrupt`, and nothing of the block is returned. Absent: `Invalid`.
    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>>;

    /// Names of published files, sorted.
    async fn names(&self) -> PortResult<Vec<Box<str>>>;
}

/// A file being written.
#[async_trait]
pub trait KeyFileWriter: Send {
    /// Appends keys. A key of another width: `Invalid`, and nothing of the call is written.
    async fn append(&mut self, keys: &[Key]) -> PortResult<()>;

    /// Makes the file durable and visible under its name, in one step. Dropped instead: the file never existed.
    async fn publish(self: Box<Self>) -> PortResult<KeyFileStat>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFileLayout {
    /// Symbols per key.
    pub width: usize,
    /// Keys that share one checksum.
    pub block_keys: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFileStat {
    pub layout: KeyFileLayout,
    pub keys: u64,
}
