use std::sync::Arc;

use async_trait::async_trait;
use curt_core::ports::{KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{Key, PortError, PortResult};
use ureq::http::Method;

use super::client::{Client, Reply, Request};
use super::uploads::{self, Upload};
use super::{asked, failure, xml};
use crate::key_layout::{self, Asked, Tally};
use crate::sealed::seal;

/// What goes up at once. Stores take no less than 5 MiB, except for the last part, and no more than 10,000 parts.
const PART_BYTES: usize = 8 << 20;
/// Says which writer an object is from.
const WRITER_HEADER: &str = "x-amz-meta-curt-writer";

/// A key file being written.
pub(super) struct S3KeyFileWriter {
    layout: KeyFileLayout,
    /// Away while a call works on it. A call that failed or was dropped half-way does not bring it back: what has been
    /// sent is unknown then, and the file must be started anew.
    draft: Option<Draft>,
}

impl S3KeyFileWriter {
    pub(super) fn new(draft: Draft, layout: KeyFileLayout) -> Self {
        Self {
            layout,
            draft: Some(draft),
        }
    }
}

#[async_trait]
impl KeyFileWriter for S3KeyFileWriter {
    async fn append(&mut self, keys: &[Key]) -> PortResult<()> {
        let asked = asked("append keys");
        let bytes = key_layout::join(keys, self.layout.width, asked)?;
        let mut draft = self.draft.take().ok_or_else(|| asked.half_written())?;
        draft.tally.add(&bytes);
        draft.waiting.extend_from_slice(&bytes);
        if draft.waiting.len() >= PART_BYTES {
            let sending = move || {
                draft.send_part(asked)?;
                Ok(draft)
            };
            draft = asked.off_runtime(sending).await?;
        }
        self.draft = Some(draft);
        Ok(())
    }

    async fn publish(mut self: Box<Self>) -> PortResult<KeyFileStat> {
        let asked = asked("publish a key file");
        let draft = self.draft.take().ok_or_else(|| asked.half_written())?;
        asked.off_runtime(move || draft.publish(asked)).await
    }
}

/// What waits to be sent, and what has been sent and nobody sees. Dropped: the latter is removed.
pub(super) struct Draft {
    client: Arc<Client>,
    name: Box<str>,
    object: String,
    /// A random number that no other writer has.
    writer: String,
    tally: Tally,
    waiting: Vec<u8>,
    upload: Option<Upload>,
}

impl Draft {
    pub(super) fn new(client: Arc<Client>, name: Box<str>, layout: KeyFileLayout) -> Self {
        Self {
            object: client.object(&name),
            client,
            name,
            writer: format!("{:032x}", rand::random::<u128>()),
            tally: Tally::new(layout),
            waiting: Vec::new(),
            upload: None,
        }
    }

    pub(super) fn refuse_published(&self, asked: Asked) -> PortResult<()> {
        match self.published_by(asked)? {
            Some(_) => Err(asked.already_published(&self.name)),
            None => Ok(()),
        }
    }

    /// Removes what dead writers left. A store that does not let us costs nothing but room.
    pub(super) fn sweep(&self, asked: Asked) {
        uploads::sweep(&self.client, asked).ok();
    }

    fn send_part(&mut self, asked: Asked) -> PortResult<()> {
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => Upload::start(&self.client, &self.object, self.headers(), asked)?,
        };
        let sent = upload.send_part(&self.client, &self.object, &self.waiting, asked);
        self.upload = Some(upload);
        self.waiting.clear();
        sent
    }

    fn publish(mut self, asked: Asked) -> PortResult<KeyFileStat> {
        let sums = self.tally.sums();
        self.waiting.extend_from_slice(&seal(&sums));
        if self.upload.is_some() {
            self.send_part(asked)?;
        }
        // For stores that do not know the condition.
        self.refuse_published(asked)?;
        let reply = match &self.upload {
            Some(upload) => upload.complete(&self.client, &self.object, asked),
            None => self.put(asked),
        };
        if let Err(error) = reply.and_then(|reply| self.check(&reply, asked)) {
            self.is_published_all_the_same(asked, error)?;
        }
        self.upload = None;
        Ok(sums.stat())
    }

    fn put(&self, asked: Asked) -> PortResult<Reply> {
        let mut headers = self.headers();
        headers.push(("if-none-match", "*".into()));
        let request = Request {
            headers,
            body: &self.waiting,
            ..Request::new(Method::PUT, &self.object)
        };
        self.client.send(asked, request)
    }

    fn check(&self, reply: &Reply, asked: Asked) -> PortResult<()> {
        // Putting parts together begins with an answer of 200, which may turn out to be an error at its end.
        let text = reply.text();
        match (reply.status, xml::text(&text, "Code")) {
            (200, None) => Ok(()),
            (412, _) | (_, Some("PreconditionFailed")) => Err(asked.already_published(&self.name)),
            (_, Some("NoSuchUpload")) => Err(asked.half_written()),
            _ => Err(failure::of_reply(asked, reply)),
        }
    }

    /// After a refusal or a lost answer: an earlier try of the same request may have been taken.
    fn is_published_all_the_same(&self, asked: Asked, error: PortError) -> PortResult<()> {
        match self.published_by(asked) {
            Ok(Some(writer)) if writer == self.writer => Ok(()),
            Ok(Some(_)) => Err(asked.already_published(&self.name)),
            _ => Err(error),
        }
    }

    /// The writer of the published file.
    fn published_by(&self, asked: Asked) -> PortResult<Option<String>> {
        let request = Request::new(Method::HEAD, &self.object);
        let reply = self.client.send(asked, request)?;
        match reply.status {
            200 => {
                let writer = reply.header(WRITER_HEADER).unwrap_or_default();
                Ok(Some(writer.to_owned()))
            }
            404 => Ok(None),
            _ => Err(failure::of_reply(asked, &reply)),
        }
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![(WRITER_HEADER, self.writer.clone())]
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let Some(upload) = self.upload.take() else {
            return;
        };
        let (client, object) = (Arc::clone(&self.client), std::mem::take(&mut self.object));
        let remove = move || upload.abort(&client, &object, asked("remove a draft")).ok();
        // Parts that stay behind all the same are removed by a later writer's sweep, or by the store.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => drop(remove()),
        }
    }
}
