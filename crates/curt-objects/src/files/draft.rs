use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;

use super::folder::{Folder, FolderLock, remove_if_there};
use crate::engine::Draft;
use crate::key_layout::{Checksums, Operation};

/// The keys written so far. Dropped: they are removed.
pub(crate) struct DiskDraft {
    folder: Arc<Folder>,
    name: Box<str>,
    path: PathBuf,
    file: File,
}

#[async_trait]
impl Draft for DiskDraft {
    async fn write(mut self, bytes: Vec<u8>, operation: Operation) -> PortResult<Self> {
        let write = move || match self.file.write_all(&bytes) {
            Ok(()) => Ok(self),
            Err(error) => Err(self.folder.failed(operation, &self.name, error)),
        };
        operation.off_runtime(write).await
    }

    async fn publish(self, checksums: &Checksums, operation: Operation) -> PortResult<()> {
        let checksums = checksums.encode();
        let publish = move || self.publish_with(&checksums, operation);
        operation.off_runtime(publish).await
    }
}

impl DiskDraft {
    pub(super) fn start(
        folder: Arc<Folder>,
        name: Box<str>,
        operation: Operation,
    ) -> PortResult<Self> {
        let failed = |error| folder.failed(operation, &name, error);
        let lock = folder.lock().map_err(failed)?;
        refuse_published(&folder, &name, operation)?;
        folder.sweep_drafts(&lock).map_err(failed)?;
        let (path, file) = folder.start_draft(&name, &lock).map_err(failed)?;
        Ok(Self {
            folder,
            name,
            path,
            file,
        })
    }

    fn publish_with(self, checksums: &[u8], operation: Operation) -> PortResult<()> {
        let failed = |error| self.folder.failed(operation, &self.name, error);
        // The long wait for the disk comes before the lock.
        self.file.sync_all().map_err(failed)?;
        let lock = self.folder.lock().map_err(failed)?;
        refuse_published(&self.folder, &self.name, operation)?;
        self.move_into_place(checksums, &lock).map_err(failed)
    }

    /// The keys first, durably; then the side file, whose appearance publishes both.
    fn move_into_place(&self, checksums: &[u8], lock: &FolderLock) -> io::Result<()> {
        let (checksums_draft, mut file) = self.folder.start_draft(&self.name, lock)?;
        file.write_all(checksums)?;
        file.sync_all()?;
        fs::rename(&self.path, self.folder.keys_path(&self.name))?;
        self.folder.sync()?;
        fs::rename(checksums_draft, self.folder.checksums_path(&self.name))?;
        self.folder.sync()
    }
}

impl Drop for DiskDraft {
    fn drop(&mut self) {
        // A draft that stays behind is removed by the next writer's sweep.
        remove_if_there(&self.path).ok();
    }
}

fn refuse_published(folder: &Folder, name: &str, operation: Operation) -> PortResult<()> {
    match folder.checksums_path(name).try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(operation.already_published(name)),
        Err(error) => Err(folder.failed(operation, name, error)),
    }
}
