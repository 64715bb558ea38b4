//! Objects that go up in parts.

use curt_core::PortResult;
use jiff::Timestamp;
use roxmltree::Node;
use rusty_s3::Method;

use super::client::{Client, Request};
use super::failure;
use super::reply::{Reply, child, elements};
use crate::key_layout::Operation;
use crate::sealed::{DRAFT_AGE_MAX, published_name};

/// The parts of an object that have gone up.
pub(super) struct Upload {
    id: String,
    /// What the store calls each part.
    etags: Vec<String>,
}

impl Upload {
    pub(super) fn start(
        client: &Client,
        request: &Request<'_>,
        operation: Operation,
    ) -> PortResult<Self> {
        let reply = client.send(operation, request)?;
        let id = reply.read_xml(|root| child(root, "UploadId"));
        match id {
            Some(id) if reply.status == 200 && !id.is_empty() => Ok(Self {
                id,
                etags: Vec::new(),
            }),
            _ => Err(failure::of_reply(operation, &reply)),
        }
    }

    pub(super) fn send_part(
        &mut self,
        client: &Client,
        object: &str,
        part: &[u8],
        operation: Operation,
    ) -> PortResult<()> {
        let number = (self.etags.len() + 1).to_string();
        let request = Request::new(Method::Put, object)
            .query("partNumber", &number)
            .query("uploadId", &self.id)
            .body(part);
        let reply = client.send(operation, &request)?;
        match (reply.status, reply.header("etag")) {
            (200, Some(etag)) => {
                self.etags.push(etag.to_owned());
                Ok(())
            }
            _ => Err(failure::of_reply(operation, &reply)),
        }
    }

    /// Asks for the parts to be put together into an object that is not there yet.
    pub(super) fn complete(
        &self,
        client: &Client,
        object: &str,
        operation: Operation,
    ) -> PortResult<Reply> {
        let parts: String = self
            .etags
            .iter()
            .zip(1..)
            .map(|(etag, number)| {
                format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
            })
            .collect();
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let request = Request::new(Method::Post, object)
            .query("uploadId", &self.id)
            .header("if-none-match", "*")
            .body(body.as_bytes());
        client.send(operation, &request)
    }

    pub(super) fn abort(
        &self,
        client: &Client,
        object: &str,
        operation: Operation,
    ) -> PortResult<()> {
        abort(client, object, &self.id, operation)
    }
}

/// Removes uploads of key files whose writer is long gone. Some stores only do so themselves, and list none.
pub(super) fn sweep(client: &Client, operation: Operation) -> PortResult<()> {
    let request = Request::new(Method::Get, "")
        .query("uploads", "")
        .query("prefix", &client.address.prefix);
    let reply = client.send(operation, &request)?;
    let oldest = Timestamp::now() - DRAFT_AGE_MAX;
    let old = reply.read_xml(|root| started_before(oldest, root));
    for (object, id) in old.unwrap_or_default() {
        if published_name(&object).is_some() {
            abort(client, &object, &id, operation)?;
        }
    }
    Ok(())
}

/// Object and id of the listed uploads that are older.
fn started_before(oldest: Timestamp, list: Node<'_, '_>) -> Vec<(String, String)> {
    elements(list, "Upload")
        .filter(|upload| {
            let started = child(*upload, "Initiated").parse::<Timestamp>();
            started.is_ok_and(|started| started < oldest)
        })
        .map(|upload| (child(upload, "Key"), child(upload, "UploadId")))
        .collect()
}

fn abort(client: &Client, object: &str, id: &str, operation: Operation) -> PortResult<()> {
    let request = Request::new(Method::Delete, object).query("uploadId", id);
    let reply = client.send(operation, &request)?;
    match reply.status {
        // Gone already is as good.
        204 | 404 => Ok(()),
        _ => Err(failure::of_reply(operation, &reply)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_uploads_are_swept() {
        let list = "<List><Prefix>p/</Prefix>\
            <Upload><Key>p/a.keys</Key><UploadId>one</UploadId><Initiated>2026-01-01T00:00:00.000Z</Initiated></Upload>\
            <Upload><Key>p/b.keys</Key><UploadId>two</UploadId><Initiated>2026-01-02T00:00:00.001Z</Initiated></Upload>\
            <Upload><Key>p/c.keys</Key><UploadId>three</UploadId></Upload></List>";
        let oldest = "2026-01-02T00:00:00Z".parse().unwrap();
        let list = roxmltree::Document::parse(list).unwrap();
        let want = [("p/a.keys".to_owned(), "one".to_owned())];
        assert_eq!(started_before(oldest, list.root_element()), want);
    }
}
