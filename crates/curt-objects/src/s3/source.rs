use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use ureq::http::Method;

use super::client::{Client, Reply, Request};
use super::{failure, xml};
use crate::key_layout::Asked;
use crate::sealed::{Source, TAIL_BYTES};

/// An object whose end has been read.
pub(super) struct S3Source {
    client: Arc<Client>,
    object: Arc<str>,
    asked: Asked,
    length: u64,
    tail: Vec<u8>,
}

impl S3Source {
    pub(super) fn open(
        client: Arc<Client>,
        object: String,
        asked: Asked,
    ) -> PortResult<Option<Self>> {
        let reply = get(&client, &object, format!("bytes=-{TAIL_BYTES}"), asked)?;
        let length = match reply.status {
            206 => total_length(&reply),
            // A store may send the whole of a small object.
            200 => Some(reply.body.len() as u64),
            // There is no range in nothing.
            416 => Some(0),
            404 if xml::text(&reply.text(), "Code") == Some("NoSuchKey") => return Ok(None),
            _ => None,
        };
        let length = length.ok_or_else(|| failure::of_reply(asked, &reply))?;
        let tail = if length == 0 { Vec::new() } else { reply.body };
        Ok(Some(Self {
            client,
            object: object.into(),
            asked,
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
        let (client, object, asked) = (Arc::clone(&self.client), self.object.clone(), self.asked);
        let range = format!("bytes={start}-{}", start + length as u64 - 1);
        let reply = asked
            .off_runtime(move || get(&client, &object, range, asked))
            .await?;
        if reply.status != 206 {
            return Err(failure::of_reply(asked, &reply));
        }
        Ok(reply.body)
    }
}

fn get(client: &Client, object: &str, range: String, asked: Asked) -> PortResult<Reply> {
    let request = Request {
        headers: vec![("range", range)],
        ..Request::new(Method::GET, object)
    };
    client.send(asked, request)
}

/// The last number of `Content-Range: bytes 10-19/100`.
fn total_length(reply: &Reply) -> Option<u64> {
    let (_, total) = reply.header("content-range")?.rsplit_once('/')?;
    total.parse().ok()
}
