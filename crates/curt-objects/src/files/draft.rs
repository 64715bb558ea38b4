use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{Key, PortResult};

use super::asked;
use super::folder::{Folder, FolderLock, remove_if_there};
use crate::key_layout::{self, Sums, Tally};

/// A key file being written.
pub(super) struct DiskKeyFileWriter {
    layout: KeyFileLayout,
    /// Away while a call works on it. A call that failed or was dropped half-way does not bring it back: what is on
    /// the disk is unknown then, and the file must be started anew.
    draft: Option<Draft>,
}

/// The keys written so far and their checksums. Dropped: the draft is removed.
struct Draft {
    folder: Arc<Folder>,
    name: Box<str>,
    path: PathBuf,
    file: File,
    tally: Tally,
}

impl DiskKeyFileWriter {
    pub(super) fn start(
        folder: Arc<Folder>,
        name: Box<str>,
        layout: KeyFileLayout,
    ) -> PortResult<Self> {
        const OP: &str = "start a key file";
        let failed = |error| folder.failed(OP, &name, error);
        let lock = folder.lock().map_err(failed)?;
        refuse_published(&folder, &name, OP)?;
        folder.sweep_drafts(&lock).map_err(failed)?;
        let (path, file) = folder.start_draft(&name, &lock).map_err(failed)?;
        let draft = Draft {
            folder,
            name,
            path,
            file,
            tally: Tally::new(layout),
        };
        Ok(Self {
            layout,
            draft: Some(draft),
        })
    }

    fn take_draft(&mut self, op: &'static str) -> PortResult<Draft> {
        self.draft.take().ok_or_else(|| asked(op).half_written())
    }
}

#[async_trait]
impl KeyFileWriter for DiskKeyFileWriter {
    async fn append(&mut self, keys: &[Key]) -> PortResult<()> {
        const OP: &str = "append keys";
        let bytes = key_layout::join(keys, self.layout.width, asked(OP))?;
        let mut draft = self.take_draft(OP)?;
        let draft = asked(OP).off_runtime(move || {
            draft
                .append(&bytes)
                .map_err(|error| draft.folder.failed(OP, &draft.name, error))?;
            Ok(draft)
        });
        self.draft = Some(draft.await?);
        Ok(())
    }

    async fn publish(mut self: Box<Self>) -> PortResult<KeyFileStat> {
        const OP: &str = "publish a key file";
        let draft = self.take_draft(OP)?;
        asked(OP).off_runtime(move || draft.publish(OP)).await
    }
}

impl Draft {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.tally.add(bytes);
        Ok(())
    }

    fn publish(self, op: &'static str) -> PortResult<KeyFileStat> {
        let sums = self.tally.sums();
        let failed = |error| self.folder.failed(op, &self.name, error);
        // The long wait for the disk comes before the lock.
        self.file.sync_all().map_err(failed)?;
        let lock = self.folder.lock().map_err(failed)?;
        refuse_published(&self.folder, &self.name, op)?;
        self.move_into_place(&sums, &lock).map_err(failed)?;
        Ok(sums.stat())
    }

    /// The keys first, durably; then the side file, whose appearance publishes both.
    fn move_into_place(&self, sums: &Sums, lock: &FolderLock) -> io::Result<()> {
        let (sums_draft, mut file) = self.folder.start_draft(&self.name, lock)?;
        file.write_all(&sums.encode())?;
        file.sync_all()?;
        fs::rename(&self.path, self.folder.keys_path(&self.name))?;
        self.folder.sync()?;
        fs::rename(sums_draft, self.folder.sums_path(&self.name))?;
        self.folder.sync()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // A draft that stays behind is removed by the next writer's sweep.
        remove_if_there(&self.path).ok();
    }
}

fn refuse_published(folder: &Folder, name: &str, op: &'static str) -> PortResult<()> {
    let published = folder
        .sums_path(name)
        .try_exists()
        .map_err(|error| folder.failed(op, name, error))?;
    if published {
        return Err(asked(op).already_published(name));
    }
    Ok(())
}
