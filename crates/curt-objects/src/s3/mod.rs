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
//! Seven requests are all that is needed of S3. `rusty-s3` signs them, and the HTTP client that the rest of the program
//! uses sends them: no runtime, no C, and nothing that starts before it is asked.

mod address;
mod client;
mod draft;
mod failure;
mod reply;
mod source;
mod uploads;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use rusty_s3::Method;

use self::address::S3Address;
use self::client::{Client, Request};
use self::draft::S3Draft;
use self::reply::{child, elements};
use self::source::S3Source;
use crate::engine::{Engine, EngineKeyFile};
use crate::key_layout::Operation;
use crate::sealed::{PUBLISHED_SUFFIX, Sealed, published_name};

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
pub type S3KeyFile = EngineKeyFile<S3>;

#[derive(Clone, Debug)]
pub struct S3 {
    client: Arc<Client>,
}

impl S3KeyFile {
    /// Reads the address, and the environment for what it leaves out. Connects with the first call.
    pub fn open(address: &str, settings: S3Settings) -> PortResult<Self> {
        let address = S3Address::parse(address, |name| std::env::var(name).ok())?;
        Ok(Self::new(S3 {
            client: Arc::new(Client::new(address, settings)),
        }))
    }
}

#[async_trait]
impl Engine for S3 {
    const NAME: &'static str = "s3";
    type Draft = S3Draft;
    type Published = Sealed<S3Source>;

    async fn start(&self, name: Box<str>, operation: Operation) -> PortResult<S3Draft> {
        let client = Arc::clone(&self.client);
        let start = move || {
            let draft = S3Draft::new(client, name);
            draft.refuse_published(operation)?;
            draft.sweep(operation);
            Ok(draft)
        };
        operation.off_runtime(start).await
    }

    async fn open(
        &self,
        name: Box<str>,
        operation: Operation,
    ) -> PortResult<Option<Sealed<S3Source>>> {
        let client = Arc::clone(&self.client);
        let object = client.object(&name);
        let source = operation.off_runtime(move || S3Source::open(client, object, operation));
        match source.await? {
            Some(source) => Sealed::open(source, name, operation).await.map(Some),
            None => Ok(None),
        }
    }

    async fn list(&self, operation: Operation) -> PortResult<Vec<Box<str>>> {
        let client = Arc::clone(&self.client);
        operation.off_runtime(move || client.names(operation)).await
    }
}

impl Client {
    /// The object of a key file.
    fn object(&self, name: &str) -> String {
        format!("{}{name}{PUBLISHED_SUFFIX}", self.address.prefix)
    }

    fn names(&self, operation: Operation) -> PortResult<Vec<Box<str>>> {
        let mut names = Vec::new();
        let mut next = String::new();
        loop {
            let mut request = Request::new(Method::Get, "")
                .query("list-type", "2")
                .query("delimiter", "/")
                .query("prefix", &self.address.prefix);
            if !next.is_empty() {
                request = request.query("continuation-token", &next);
            }
            let reply = self.send(operation, &request)?;
            let page = reply.read_xml(|root| {
                let objects = elements(root, "Contents").map(|object| child(object, "Key"));
                names.extend(objects.filter_map(|object| published_name(&object)));
                child(root, "NextContinuationToken")
            });
            next = match page {
                Some(next) if reply.status == 200 => next,
                _ => return Err(failure::of_reply(operation, &reply)),
            };
            if next.is_empty() {
                return Ok(names);
            }
        }
    }
}

fn operation(name: &'static str) -> Operation {
    Operation {
        backend: S3::NAME,
        name,
    }
}
