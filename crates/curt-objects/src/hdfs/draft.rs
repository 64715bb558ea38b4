use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use curt_core::{PortError, PortResult};
use hdfs_native::HdfsError;
use hdfs_native::client::WriteOptions;
use hdfs_native::file::FileWriter;

use super::connection::HdfsConnection;
use super::operation;
use crate::engine::Draft;
use crate::key_layout::{Checksums, Operation};
use crate::sealed::seal;

/// A file that only its writer knows, open on the DataNodes. Dropped: it is removed.
pub(crate) struct HdfsDraft {
    connection: Arc<HdfsConnection>,
    name: Box<str>,
    /// Empty once it is published.
    path: String,
    writer: FileWriter,
}

#[async_trait]
impl Draft for HdfsDraft {
    async fn write(mut self, bytes: Vec<u8>, operation: Operation) -> PortResult<Self> {
        if !bytes.is_empty() {
            let writing = self.writer.write_bytes(Bytes::from(bytes));
            self.connection.transfer(operation, writing).await?;
        }
        Ok(self)
    }

    async fn publish(self, checksums: &Checksums, operation: Operation) -> PortResult<()> {
        let mut draft = self.write(seal(checksums), operation).await?;
        // Closing alone leaves the keys in the DataNodes' memory: a power cut could take a published file.
        draft
            .connection
            .transfer(operation, draft.writer.hsync())
            .await?;
        draft
            .connection
            .transfer(operation, draft.writer.close())
            .await?;
        draft.rename(operation).await?;
        draft.path.clear();
        Ok(())
    }
}

impl HdfsDraft {
    pub(super) async fn start(
        connection: Arc<HdfsConnection>,
        name: Box<str>,
        operation: Operation,
    ) -> PortResult<Self> {
        let path = connection.draft(&name);
        let client = connection.client(operation)?;
        let options = WriteOptions::default().overwrite(false).create_parent(true);
        let writer = connection
            .ask(operation, client.create(&path, options))
            .await?;
        Ok(Self {
            connection,
            name,
            path,
            writer,
        })
    }

    async fn rename(&self, operation: Operation) -> PortResult<()> {
        let published = self.connection.published(&self.name);
        let client = self.connection.client(operation)?;
        let renaming = async {
            match client.rename(&self.path, &published, false).await {
                Err(HdfsError::AlreadyExists(_)) => Ok(false),
                renamed => renamed.map(|()| true),
            }
        };
        match self.connection.ask(operation, renaming).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(operation.already_published(&self.name)),
            Err(error) => self.was_renamed(&published, operation, error).await,
        }
    }

    /// After an answer was lost: only the renaming takes away the draft and leaves a file.
    async fn was_renamed(
        &self,
        published: &str,
        operation: Operation,
        lost: PortError,
    ) -> PortResult<()> {
        let has_draft = self.connection.has(&self.path, operation).await;
        let has_published = self.connection.has(published, operation).await;
        match (has_draft, has_published) {
            (Ok(false), Ok(true)) => Ok(()),
            _ => Err(lost),
        }
    }
}

impl Drop for HdfsDraft {
    fn drop(&mut self) {
        if self.path.is_empty() {
            return;
        }
        let operation = operation("remove a draft");
        let (Ok(runtime), Ok(client)) = (
            tokio::runtime::Handle::try_current(),
            self.connection.client(operation),
        ) else {
            return;
        };
        let (connection, path) = (Arc::clone(&self.connection), std::mem::take(&mut self.path));
        // A draft that stays behind all the same is removed by a later writer's sweep.
        runtime.spawn(async move {
            connection
                .ask(operation, client.delete(&path, false))
                .await
                .ok()
        });
    }
}
