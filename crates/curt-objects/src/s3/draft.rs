use std::sync::Arc;

use async_trait::async_trait;
use curt_core::{PortError, PortResult};
use rusty_s3::Method;

use super::client::{Client, Request};
use super::reply::Reply;
use super::uploads::{self, Upload};
use super::{failure, operation};
use crate::engine::Draft;
use crate::key_layout::{Checksums, Operation};
use crate::sealed::seal;

/// What goes up at once. Stores take no less than 5 MiB, except for the last part, and no more than 10,000 parts.
const PART_BYTES: usize = 8 << 20;
/// Says which writer an object is from.
const WRITER_HEADER: &str = "x-amz-meta-curt-writer";

/// What waits to be sent, and what has been sent and nobody sees. Dropped: the latter is removed.
pub(crate) struct S3Draft {
    client: Arc<Client>,
    name: Box<str>,
    object: String,
    /// A random number that no other writer has.
    writer: String,
    waiting: Vec<u8>,
    upload: Option<Upload>,
}

#[async_trait]
impl Draft for S3Draft {
    async fn write(mut self, bytes: Vec<u8>, operation: Operation) -> PortResult<Self> {
        self.waiting.extend_from_slice(&bytes);
        if self.waiting.len() < PART_BYTES {
            return Ok(self);
        }
        let send = move || self.send_part(operation).map(|()| self);
        operation.off_runtime(send).await
    }

    async fn publish(mut self, checksums: &Checksums, operation: Operation) -> PortResult<()> {
        self.waiting.extend_from_slice(&seal(checksums));
        operation
            .off_runtime(move || self.complete(operation))
            .await
    }
}

impl S3Draft {
    pub(super) fn new(client: Arc<Client>, name: Box<str>) -> Self {
        Self {
            object: client.object(&name),
            client,
            name,
            writer: format!("{:032x}", rand::random::<u128>()),
            waiting: Vec::new(),
            upload: None,
        }
    }

    pub(super) fn refuse_published(&self, operation: Operation) -> PortResult<()> {
        match self.published_by(operation)? {
            Some(_) => Err(operation.already_published(&self.name)),
            None => Ok(()),
        }
    }

    /// Removes what dead writers left. A store that does not let us costs nothing but room.
    pub(super) fn sweep(&self, operation: Operation) {
        uploads::sweep(&self.client, operation).ok();
    }

    fn send_part(&mut self, operation: Operation) -> PortResult<()> {
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => {
                let request = self.request(Method::Post).query("uploads", "");
                Upload::start(&self.client, &request, operation)?
            }
        };
        let sent = upload.send_part(&self.client, &self.object, &self.waiting, operation);
        // Also after a failure: it is removed with the draft.
        self.upload = Some(upload);
        self.waiting.clear();
        sent
    }

    fn complete(mut self, operation: Operation) -> PortResult<()> {
        if self.upload.is_some() {
            self.send_part(operation)?;
        }
        // For stores that do not know the condition.
        self.refuse_published(operation)?;
        let reply = match &self.upload {
            Some(upload) => upload.complete(&self.client, &self.object, operation),
            None => self.put(operation),
        };
        if let Err(error) = reply.and_then(|reply| self.check(&reply, operation)) {
            self.is_published_all_the_same(operation, error)?;
        }
        self.upload = None;
        Ok(())
    }

    fn put(&self, operation: Operation) -> PortResult<Reply> {
        let request = self
            .request(Method::Put)
            .header("if-none-match", "*")
            .body(&self.waiting);
        self.client.send(operation, &request)
    }

    fn check(&self, reply: &Reply, operation: Operation) -> PortResult<()> {
        if reply.is_done() {
            return Ok(());
        }
        Err(match (reply.status, &*reply.refusal().0) {
            (412, _) | (_, "PreconditionFailed") => operation.already_published(&self.name),
            (_, "NoSuchUpload") => operation.half_written(),
            _ => failure::of_reply(operation, reply),
        })
    }

    /// After a refusal or a lost answer: an earlier try of the same request may have been taken.
    fn is_published_all_the_same(&self, operation: Operation, error: PortError) -> PortResult<()> {
        match self.published_by(operation) {
            Ok(Some(writer)) if writer == self.writer => Ok(()),
            Ok(Some(_)) => Err(operation.already_published(&self.name)),
            _ => Err(error),
        }
    }

    /// The writer of the published file.
    fn published_by(&self, operation: Operation) -> PortResult<Option<String>> {
        let request = Request::new(Method::Head, &self.object);
        let reply = self.client.send(operation, &request)?;
        match reply.status {
            200 => Ok(Some(reply.header(WRITER_HEADER).unwrap_or_default().into())),
            404 => Ok(None),
            _ => Err(failure::of_reply(operation, &reply)),
        }
    }

    /// A request for the object, which makes it carry its writer.
    fn request(&self, method: Method) -> Request<'_> {
        Request::new(method, &self.object).header(WRITER_HEADER, &self.writer)
    }
}

impl Drop for S3Draft {
    fn drop(&mut self) {
        let Some(upload) = self.upload.take() else {
            return;
        };
        let (client, object) = (Arc::clone(&self.client), std::mem::take(&mut self.object));
        let operation = operation("remove a draft");
        let remove = move || upload.abort(&client, &object, operation).ok();
        // Parts that stay behind all the same are removed by a later writer's sweep, or by the store.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => drop(remove()),
        }
    }
}
