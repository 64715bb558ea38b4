//! Objects that go up in parts.

use std::time::Duration;

use curt_core::PortResult;
use jiff::{SignedDuration, Timestamp};
use ureq::http::Method;

use super::client::{Client, Reply, Request};
use super::{failure, xml};
use crate::key_layout::Asked;

/// Older uploads are a dead writer's. One that lives all the same is told to start anew.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The parts of an object that have gone up.
pub(super) struct Upload {
    id: String,
    /// What the store calls each part.
    etags: Vec<String>,
}

impl Upload {
    pub(super) fn start(
        client: &Client,
        object: &str,
        headers: Vec<(&'static str, String)>,
        asked: Asked,
    ) -> PortResult<Self> {
        let request = Request {
            query: &[("uploads", "")],
            headers,
            ..Request::new(Method::POST, object)
        };
        let reply = client.send(asked, request)?;
        let text = reply.text();
        match (reply.status, xml::text(&text, "UploadId")) {
            (200, Some(id)) => Ok(Self {
                id: xml::unescape(id),
                etags: Vec::new(),
            }),
            _ => Err(failure::of_reply(asked, &reply)),
        }
    }

    pub(super) fn send_part(
        &mut self,
        client: &Client,
        object: &str,
        part: &[u8],
        asked: Asked,
    ) -> PortResult<()> {
        let number = (self.etags.len() + 1).to_string();
        let request = Request {
            query: &[("partNumber", &number), ("uploadId", &self.id)],
            body: part,
            ..Request::new(Method::PUT, object)
        };
        let reply = client.send(asked, request)?;
        match (reply.status, reply.header("etag")) {
            (200, Some(etag)) => {
                self.etags.push(etag.to_owned());
                Ok(())
            }
            _ => Err(failure::of_reply(asked, &reply)),
        }
    }

    /// Asks for the parts to be put together into an object that is not there yet.
    pub(super) fn complete(
        &self,
        client: &Client,
        object: &str,
        asked: Asked,
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
        let request = Request {
            query: &[("uploadId", &self.id)],
            headers: vec![("if-none-match", "*".into())],
            body: body.as_bytes(),
            ..Request::new(Method::POST, object)
        };
        client.send(asked, request)
    }

    pub(super) fn abort(&self, client: &Client, object: &str, asked: Asked) -> PortResult<()> {
        abort(client, object, &self.id, asked)
    }
}

/// Removes uploads of key files whose writer is long gone. Some stores only do so themselves, and list none.
pub(super) fn sweep(client: &Client, asked: Asked) -> PortResult<()> {
    let request = Request {
        query: &[("uploads", ""), ("prefix", &client.route.prefix)],
        ..Request::new(Method::GET, "")
    };
    let reply = client.send(asked, request)?;
    if reply.status != 200 {
        return Err(failure::of_reply(asked, &reply));
    }
    let age_max = SignedDuration::try_from(AGE_MAX).unwrap_or(SignedDuration::MAX);
    let oldest = Timestamp::now() - age_max;
    for (object, id) in started_before(oldest, &reply.text()) {
        if super::published_name(&object).is_some() {
            abort(client, &object, &id, asked)?;
        }
    }
    Ok(())
}

/// Object and id of the listed uploads that are older.
fn started_before(oldest: Timestamp, list: &str) -> Vec<(String, String)> {
    let uploads = xml::texts(list, "Upload");
    let old = uploads.filter_map(|upload| {
        let started: Timestamp = xml::text(upload, "Initiated")?.parse().ok()?;
        let object = xml::unescape(xml::text(upload, "Key")?);
        let id = xml::unescape(xml::text(upload, "UploadId")?);
        (started < oldest).then_some((object, id))
    });
    old.collect()
}

fn abort(client: &Client, object: &str, id: &str, asked: Asked) -> PortResult<()> {
    let request = Request {
        query: &[("uploadId", id)],
        ..Request::new(Method::DELETE, object)
    };
    let reply = client.send(asked, request)?;
    match reply.status {
        // Gone already is as good.
        204 | 404 => Ok(()),
        _ => Err(failure::of_reply(asked, &reply)),
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
        let want = [("p/a.keys".to_owned(), "one".to_owned())];
        assert_eq!(started_before(oldest, list), want);
    }
}
