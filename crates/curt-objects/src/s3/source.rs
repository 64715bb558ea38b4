use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use rusty_s3::Method;

use super::client::{Client, Request};
use super::failure;
use super::reply::Reply;
use crate::key_layout::Operation;
use crate::sealed::{Source, TAIL_BYTES};

/// An object whose end has been read.
pub(crate) struct S3Source {
    client: Arc<Client>,
    object: Arc<str>,
    operation: Operation,
    length: u64,
    tail: Vec<u8>,
}

impl S3Source {
    pub(super) fn open(
        client: Arc<Client>,
        object: String,
        operation: Operation,
    ) -> PortResult<Option<Self>> {
        let reply = get(&client, &object, format!("bytes=-{TAIL_BYTES}"), operation)?;
        let length = match reply.status {
            206 => total_length(&reply),
            // A store may send the whole of a small object.
            200 => Some(reply.body.len() as u64),
            // There is no range in nothing.
            416 => Some(0),
            404 if reply.refusal().0 == "NoSuchKey" => return Ok(None),
            _ => None,
        };
        let length = length.ok_or_else(|| failure::of_reply(operation, &reply))?;
        let tail = if length == 0 { Vec::new() } else { reply.body };
        Ok(Some(Self {
            client,
            object: object.into(),
            operation,
            length,
            tail,
        }))
    }

    /// The part, where the end that has been read holds it.
    fn part_of_tail(&self, start: u64, length: usize) -> Option<Vec<u8>> {
        let tail_start = self.length.checked_sub(self.tail.len() as u64)?;
        let start = usize::try_from(start.checked_sub(tail_start)?).ok()?;
        let part = self.tail.get(start..start.checked_add(length)?)?;
        Some(part.to_vec())
    }
}

#[async_trait]
impl Source for S3Source {
    fn length(&self) -> u64 {
        self.length
    }

    async fn part(&self, start: u64, length: usize) -> PortResult<Vec<u8>> {
        if let Some(part) = self.part_of_tail(start, length) {
            return Ok(part);
        }
        let (client, object, operation) = (
            Arc::clone(&self.client),
            self.object.clone(),
            self.operation,
        );
        let range = format!("bytes={start}-{}", start + length as u64 - 1);
        let reply = operation
            .off_runtime(move || get(&client, &object, range, operation))
            .await?;
        if reply.status != 206 {
            return Err(failure::of_reply(operation, &reply));
        }
        Ok(reply.body)
    }
}

fn get(client: &Client, object: &str, range: String, operation: Operation) -> PortResult<Reply> {
    let request = Request::new(Method::Get, object).header("range", range);
    client.send(operation, &request)
}

/// The last number of `Content-Range: bytes 10-19/100`.
fn total_length(reply: &Reply) -> Option<u64> {
    let (_, total) = reply.header("content-range")?.rsplit_once('/')?;
    total.parse().ok()
}
