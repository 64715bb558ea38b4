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
use curt_core::ports::{KeyFile, KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{ErrorKind, Key, PortError, PortResult};

use self::draft::DiskKeyFileWriter;
use self::folder::Folder;
use crate::key_layout::{self, Asked, Sums, checked_name};

/// The adapter's name in errors.
const BACKEND: &str = "files";

/// Key files in one folder of a local disk.
#[derive(Clone, Debug)]
pub struct DiskKeyFile {
    folder: Arc<Folder>,
}

impl DiskKeyFile {
    /// Opens the folder, and makes it if it is not there.
    pub fn open(folder: impl AsRef<Path>) -> PortResult<Self> {
        let folder = Folder::open(folder.as_ref())?;
        Ok(Self {
            folder: Arc::new(folder),
        })
    }
}

#[async_trait]
impl KeyFile for DiskKeyFile {
    async fn create(
        &self,
        name: &str,
        layout: KeyFileLayout,
    ) -> PortResult<Box<dyn KeyFileWriter>> {
        const OP: &str = "start a key file";
        let name = checked_name(name, asked(OP))?;
        key_layout::check_layout(layout, asked(OP))?;
        let folder = Arc::clone(&self.folder);
        let writer = asked(OP).off_runtime(move || DiskKeyFileWriter::start(folder, name, layout));
        Ok(Box::new(writer.await?))
    }

    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>> {
        const OP: &str = "look at a key file";
        let name = checked_name(name, asked(OP))?;
        let folder = Arc::clone(&self.folder);
        asked(OP)
            .off_runtime(move || {
                let published = Published::open(&folder, &name, OP)?;
                Ok(published.map(|file| file.sums.stat()))
            })
            .await
    }

    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>> {
        const OP: &str = "read keys";
        let name = checked_name(name, asked(OP))?;
        let folder = Arc::clone(&self.folder);
        asked(OP)
            .off_runtime(move || {
                let published = Published::open(&folder, &name, OP)?;
                let mut file = published.ok_or_else(|| asked(OP).absent(&name))?;
                file.read(first, count)
            })
            .await
    }

    async fn names(&self) -> PortResult<Vec<Box<str>>> {
        const OP: &str = "list key files";
        let folder = Arc::clone(&self.folder);
        asked(OP)
            .off_runtime(move || folder.published_names(OP))
            .await
    }
}

/// A published file, its side file read and checked.
struct Published {
    name: Box<str>,
    sums: Sums,
    keys: File,
}

impl Published {
    /// `None` when there is no side file: nothing is published under that name.
    fn open(folder: &Folder, name: &str, op: &'static str) -> PortResult<Option<Self>> {
        let bytes = match std::fs::read(folder.sums_path(name)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == IoKind::NotFound => return Ok(None),
            Err(error) => return Err(folder.failed(op, name, error)),
        };
        let sums = Sums::decode(&bytes).map_err(|why| asked(op).corrupt(name, why))?;
        let keys = match File::open(folder.keys_path(name)) {
            Ok(keys) => keys,
            Err(error) if error.kind() == IoKind::NotFound => {
                let why = "its keys are gone, only the side file is left";
                return Err(asked(op).corrupt(name, why));
            }
            Err(error) => return Err(folder.failed(op, name, error)),
        };
        let metadata = keys
            .metadata()
            .map_err(|error| folder.failed(op, name, error))?;
        if metadata.len() != sums.bytes() {
            return Err(asked(op).corrupt(name, "it is longer or shorter than it was"));
        }
        Ok(Some(Self {
            name: name.into(),
            sums,
            keys,
        }))
    }

    fn read(&mut self, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let wanted = self.sums.within(first, count);
        let mut keys = Vec::new();
        let mut bytes = Vec::new();
        for block in self.sums.blocks_of(&wanted) {
            self.read_block(block, &mut bytes)?;
            self.sums
                .open_block(block, &bytes, &wanted, &mut keys)
                .map_err(|why| asked("read keys").corrupt(&self.name, &why))?;
        }
        Ok(keys)
    }

    fn read_block(&mut self, block: u64, bytes: &mut Vec<u8>) -> PortResult<()> {
        let (start, length) = self.sums.block_place(block);
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
        PortError::new(kind, BACKEND, "read keys", detail).with_source(error)
    }
}

fn asked(op: &'static str) -> Asked {
    Asked {
        backend: BACKEND,
        op,
    }
}
