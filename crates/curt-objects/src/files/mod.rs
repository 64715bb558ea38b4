//! `KeyFile` on a local disk.
//!
//! A published file is a pair: `NAME.keys`, the keys one after the other without separators, so that a key's place is
//! its number times the width; and `NAME.sums`, which says how they are laid out and holds a checksum for each block.
//! A file is published exactly when its side file is there, and the renaming of the side file is the one step that
//! makes it so. Before that step the keys are durable under their final name: whatever a crash interrupts, a side
//! file never stands without the keys that it describes.
//!
//! | crash after | what is left | seen as |
//! |---|---|---|
//! | writing the drafts | drafts, named `.NAME.….part` | absent; the next `create` sweeps them |
//! | renaming the keys | `NAME.keys` alone | absent; the next `publish` of that name replaces it |
//! | renaming the side file | both, the keys durable before | absent or published, never half |
//!
//! Writers of several processes are kept apart by a lock on the folder, held while drafts are started and published.

mod draft;
mod folder;

use std::fs::File;
use std::io::{ErrorKind as IoKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::KeyFileStat;
use curt_core::{ErrorKind, Key, PortError, PortResult};

use self::draft::DiskDraft;
use self::folder::Folder;
use crate::engine::{Engine, EngineKeyFile, Published};
use crate::key_layout::{Checksums, Operation};

/// Key files in one folder of a local disk.
pub type DiskKeyFile = EngineKeyFile<Disk>;

#[derive(Clone, Debug)]
pub struct Disk {
    folder: Arc<Folder>,
}

impl DiskKeyFile {
    /// Opens the folder, and makes it if it is not there.
    pub fn open(folder: impl AsRef<Path>) -> PortResult<Self> {
        let operation = Operation {
            backend: Disk::NAME,
            name: "open the folder of key files",
        };
        let folder = Folder::open(folder.as_ref(), operation)?;
        Ok(Self::new(Disk {
            folder: Arc::new(folder),
        }))
    }
}

#[async_trait]
impl Engine for Disk {
    const NAME: &'static str = "files";
    type Draft = DiskDraft;
    type Published = PublishedPair;

    async fn start(&self, name: Box<str>, operation: Operation) -> PortResult<DiskDraft> {
        let folder = Arc::clone(&self.folder);
        let start = move || DiskDraft::start(folder, name, operation);
        operation.off_runtime(start).await
    }

    async fn open(
        &self,
        name: Box<str>,
        operation: Operation,
    ) -> PortResult<Option<PublishedPair>> {
        let folder = Arc::clone(&self.folder);
        let open = move || PublishedPair::open(&folder, name, operation);
        operation.off_runtime(open).await
    }

    async fn list(&self, operation: Operation) -> PortResult<Vec<Box<str>>> {
        let folder = Arc::clone(&self.folder);
        operation
            .off_runtime(move || folder.published_names(operation))
            .await
    }
}

/// A published file, its side file read and checked.
pub(crate) struct PublishedPair {
    name: Box<str>,
    operation: Operation,
    checksums: Checksums,
    keys: File,
}

#[async_trait]
impl Published for PublishedPair {
    fn stat(&self) -> KeyFileStat {
        self.checksums.stat()
    }

    async fn read(mut self, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let operation = self.operation;
        let read = move || self.read_blocks(first, count);
        operation.off_runtime(read).await
    }
}

impl PublishedPair {
    /// `None` when there is no side file: nothing is published under that name.
    fn open(folder: &Folder, name: Box<str>, operation: Operation) -> PortResult<Option<Self>> {
        let failed = |error| folder.failed(operation, &name, error);
        let bytes = match std::fs::read(folder.checksums_path(&name)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == IoKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let checksums = Checksums::decode(&bytes).map_err(|why| operation.corrupt(&name, why))?;
        let keys = match File::open(folder.keys_path(&name)) {
            Ok(keys) => keys,
            Err(error) if error.kind() == IoKind::NotFound => {
                let why = "its keys are gone, only the side file is left";
                return Err(operation.corrupt(&name, why));
            }
            Err(error) => return Err(failed(error)),
        };
        if keys.metadata().map_err(failed)?.len() != checksums.bytes() {
            return Err(operation.corrupt(&name, "it is longer or shorter than it was"));
        }
        Ok(Some(Self {
            name,
            operation,
            checksums,
            keys,
        }))
    }

    fn read_blocks(&mut self, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let wanted = self.checksums.within(first, count);
        let mut keys = Vec::new();
        let mut bytes = Vec::new();
        for block in self.checksums.blocks_of(&wanted) {
            self.read_block(block, &mut bytes)?;
            self.checksums
                .open_block(block, &bytes, &wanted, &mut keys)
                .map_err(|why| self.operation.corrupt(&self.name, &why))?;
        }
        Ok(keys)
    }

    fn read_block(&mut self, block: u64, bytes: &mut Vec<u8>) -> PortResult<()> {
        let (start, length) = self.checksums.block_place(block);
        bytes.resize(length, 0);
        self.keys
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.keys.read_exact(bytes))
            .map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: std::io::Error) -> PortError {
        let kind = match error.kind() {
            IoKind::UnexpectedEof => ErrorKind::Corrupt,
            _ => ErrorKind::Unavailable,
        };
        let detail = format!("the key file {:?} cannot be read: {error}", self.name);
        self.operation.error(kind, detail).with_source(error)
    }
}
