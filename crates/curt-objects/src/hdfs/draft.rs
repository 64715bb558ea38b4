use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use curt_core::ports::{KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{Key, PortError, PortResult};
use hdfs_native::HdfsError;
use hdfs_native::client::WriteOptions;
use hdfs_native::file::FileWriter;

use super::line::Line;
use super::{asked, failure};
use crate::key_layout::{self, Asked, Tally};
use crate::sealed::seal;

/// A key file being written.
pub(super) struct HdfsKeyFileWriter {
    layout: KeyFileLayout,
    /// Away while a call works on it. A call that failed or was dropped half-way does not bring it back: what has been
    /// written is unknown then, and the file must be started anew.
    draft: Option<Draft>,
}

impl HdfsKeyFileWriter {
    pub(super) fn new(draft: Draft, layout: KeyFileLayout) -> Self {
        Self {
            layout,
            draft: Some(draft),
        }
    }
}

#[async_trait]
impl KeyFileWriter for HdfsKeyFileWriter {
    async fn append(&mut self, keys: &[Key]) -> PortResult<()> {
        let asked = asked("append keys");
        let bytes = key_layout::join(keys, self.layout.width, asked)?;
        let mut draft = self.draft.take().ok_or_else(|| asked.half_written())?;
        draft.tally.add(&bytes);
        draft.write(bytes, asked).await?;
        self.draft = Some(draft);
        Ok(())
    }

    async fn publish(mut self: Box<Self>) -> PortResult<KeyFileStat> {
        let asked = asked("publish a key file");
        let draft = self.draft.take().ok_or_else(|| asked.half_written())?;
        draft.publish(asked).await
    }
}

/// A file that only its writer knows, open on the DataNodes. Dropped: it is removed.
pub(super) struct Draft {
    line: Arc<Line>,
    name: Box<str>,
    /// Empty once it is published.
    path: String,
    writer: FileWriter,
    tally: Tally,
}

impl Draft {
    pub(super) async fn start(
        line: Arc<Line>,
        name: Box<str>,
        layout: KeyFileLayout,
        asked: Asked,
    ) -> PortResult<Self> {
        let path = line.draft(&name);
        let client = line.client(asked)?;
        let options = WriteOptions::default().overwrite(false).create_parent(true);
        let writer = line.ask(asked, client.create(&path, options)).await?;
        Ok(Self {
            line,
            name,
            path,
            writer,
            tally: Tally::new(layout),
        })
    }

    async fn write(&mut self, bytes: Vec<u8>, asked: Asked) -> PortResult<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let writing = self.writer.write_bytes(Bytes::from(bytes));
        self.line.transfer(asked, writing).await?;
        Ok(())
    }

    async fn publish(mut self, asked: Asked) -> PortResult<KeyFileStat> {
        let sums = self.tally.sums();
        self.write(seal(&sums), asked).await?;
        // Closing alone leaves the keys in the DataNodes' memory: a power cut could take a published file.
        self.line.transfer(asked, self.writer.hsync()).await?;
        self.line.transfer(asked, self.writer.close()).await?;
        self.rename(asked).await?;
        self.path.clear();
        Ok(sums.stat())
    }

    async fn rename(&self, asked: Asked) -> PortResult<()> {
        let published = self.line.published(&self.name);
        let client = self.line.client(asked)?;
        let renaming = async {
            match client.rename(&self.path, &published, false).await {
                Err(HdfsError::AlreadyExists(_)) => Ok(false),
                renamed => renamed.map(|()| true),
            }
        };
        match self.line.ask(asked, renaming).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(asked.already_published(&self.name)),
            Err(error) => self.was_renamed(&published, asked, error).await,
        }
    }

    /// After an answer was lost: only the renaming takes away the draft and leaves a file.
    async fn was_renamed(&self, published: &str, asked: Asked, lost: PortError) -> PortResult<()> {
        let is_draft_there = is_there(&self.line, &self.path, asked).await;
        let is_published = is_there(&self.line, published, asked).await;
        match (is_draft_there, is_published) {
            (Ok(false), Ok(true)) => Ok(()),
            _ => Err(lost),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.path.is_empty() {
            return;
        }
        let asked = asked("remove a draft");
        let (Ok(runtime), Ok(client)) = (
            tokio::runtime::Handle::try_current(),
            self.line.client(asked),
        ) else {
            return;
        };
        let (line, path) = (Arc::clone(&self.line), std::mem::take(&mut self.path));
        // A draft that stays behind all the same is removed by a later writer's sweep.
        runtime.spawn(async move { line.ask(asked, client.delete(&path, false)).await.ok() });
    }
}

pub(super) async fn is_there(line: &Line, path: &str, asked: Asked) -> PortResult<bool> {
    let client = line.client(asked)?;
    let looking = async {
        match client.get_file_info(path).await {
            Err(error) if failure::is_absent(&error) => Ok(false),
            status => status.map(|_| true),
        }
    };
    line.ask(asked, looking).await
}
