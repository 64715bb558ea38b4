//! `KeyFile` on S3 and the stores that speak its language.
//!
//! A published file is the object `PREFIX/NAME.keys`: the keys, and behind them their checksums (see `sealed`). A small
//! one is put at once; a larger one goes up in parts that nobody sees before they are put together. Either step says
//! `If-None-Match: *`, so that the store decides between writers and a published file is never replaced. Every object
//! carries the random number of its writer: whoever loses the answer to that step can look whether it was taken.
//!
//! | crash | what is left | seen as |
//! |---|---|---|
//! | of a writer | parts of an upload | absent; a later `create` removes them when they are a day old |
//! | while publishing | parts or object | absent or published; `Timeout` where that cannot be found out |
//!
//! # Addresses
//! | address | means |
//! |---|---|
//! | `s3://bucket/curt/keys?region=eu-west-1` | a bucket of AWS, and a prefix |
//! | `s3://bucket/curt?endpoint=http://minio:9000` | a bucket of another store |
//! | `s3://KEY:SECRET@bucket/curt` | with credentials |
//!
//! Parameters: `region`, else `AWS_REGION`, else us-east-1; `endpoint`; `ca` names a file with the authority's
//! certificate where the endpoint's is not signed by a public one. Credentials that the address leaves out are
//! `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`. The bucket must be there.
//!
//! # The client
//! Six requests are all that is needed of S3. They are signed here and sent by the HTTP client that the rest of the
//! program uses: no more crates, no C, and nothing that starts before it is asked.

mod address;
mod client;
mod draft;
mod failure;
mod sign;
mod source;
mod uploads;
mod xml;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{KeyFile, KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{Key, PortResult};
use ureq::http::Method;

use self::address::Route;
use self::client::{Client, Request};
use self::draft::{Draft, S3KeyFileWriter};
use self::source::S3Source;
use crate::key_layout::{self, Asked, checked_name, is_name};
use crate::sealed::Sealed;

/// The adapter's name in errors.
const BACKEND: &str = "s3";
const SUFFIX: &str = ".keys";

/// How long to wait for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct S3Settings {
    pub connect_timeout: Duration,
    /// For a request from its beginning to the end of the answer. Up to 8 MiB go with one.
    pub request_timeout: Duration,
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(20),
        }
    }
}

/// Key files under one prefix of a bucket.
#[derive(Clone, Debug)]
pub struct S3KeyFile {
    client: Arc<Client>,
}

impl S3KeyFile {
    /// Reads the address, and the environment for what it leaves out. Connects with the first call.
    pub fn open(address: &str, settings: S3Settings) -> PortResult<Self> {
        let route = Route::parse(address, |name| std::env::var(name).ok())?;
        Ok(Self {
            client: Arc::new(Client::new(route, settings)),
        })
    }

    async fn published(&self, name: &str, asked: Asked) -> PortResult<Option<Sealed<S3Source>>> {
        let name = checked_name(name, asked)?;
        let object = self.client.object(&name);
        let client = Arc::clone(&self.client);
        let source = asked.off_runtime(move || S3Source::open(client, object, asked));
        match source.await? {
            Some(source) => Ok(Some(Sealed::open(source, &name, asked).await?)),
            None => Ok(None),
        }
    }
}

#[async_trait]
impl KeyFile for S3KeyFile {
    async fn create(
        &self,
        name: &str,
        layout: KeyFileLayout,
    ) -> PortResult<Box<dyn KeyFileWriter>> {
        let asked = asked("start a key file");
        let name = checked_name(name, asked)?;
        key_layout::check_layout(layout, asked)?;
        let client = Arc::clone(&self.client);
        let start = move || {
            let draft = Draft::new(client, name, layout);
            draft.refuse_published(asked)?;
            draft.sweep(asked);
            Ok(draft)
        };
        let draft = asked.off_runtime(start).await?;
        Ok(Box::new(S3KeyFileWriter::new(draft, layout)))
    }

    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>> {
        let file = self.published(name, asked("look at a key file")).await?;
        Ok(file.map(|file| file.stat()))
    }

    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let asked = asked("read keys");
        let file = self.published(name, asked).await?;
        let file = file.ok_or_else(|| asked.absent(name))?;
        file.read(first, count).await
    }

    async fn names(&self) -> PortResult<Vec<Box<str>>> {
        let asked = asked("list key files");
        let client = Arc::clone(&self.client);
        asked.off_runtime(move || client.names(asked)).await
    }
}

impl Client {
    /// The object of a key file.
    fn object(&self, name: &str) -> String {
        format!("{}{name}{SUFFIX}", self.route.prefix)
    }

    fn names(&self, asked: Asked) -> PortResult<Vec<Box<str>>> {
        let mut names = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let mut query = vec![
                ("list-type", "2"),
                ("delimiter", "/"),
                ("prefix", &*self.route.prefix),
            ];
            query.extend(next.as_deref().map(|token| ("continuation-token", token)));
            let request = Request {
                query: &query,
                ..Request::new(Method::GET, "")
            };
            let reply = self.send(asked, request)?;
            if reply.status != 200 {
                return Err(failure::of_reply(asked, &reply));
            }
            let page = reply.text();
            names.extend(xml::texts(&page, "Key").filter_map(published_name));
            next = xml::text(&page, "NextContinuationToken").map(xml::unescape);
            if next.is_none() {
                break;
            }
        }
        names.sort();
        Ok(names)
    }
}

fn published_name(object: &str) -> Option<Box<str>> {
    let name = object.rsplit('/').next()?.strip_suffix(SUFFIX)?;
    is_name(name).then(|| name.into())
}

fn asked(op: &'static str) -> Asked {
    Asked {
        backend: BACKEND,
        op,
    }
}
