use std::time::Duration;

use curt_core::PortResult;
use data_encoding::BASE64;
use jiff::Timestamp;
use md5::{Digest, Md5};
use rusty_s3::signing::sign;
use rusty_s3::{Map, Method};
use ureq::Agent;
use ureq::http::Request as HttpRequest;
use ureq::tls::TlsConfig;

use super::address::S3Address;
use super::reply::Reply;
use super::{S3Settings, failure};
use crate::key_layout::Operation;

/// Larger answers are refused: a block of keys is at most this large.
const BODY_BYTES_MAX: u64 = 65 << 20;
/// How long a signature is good, which is also how far the service's clock may be ahead of ours.
const SIGNATURE_SECONDS: u64 = 15 * 60;

/// Sends signed requests, and blocks while it does.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: S3Address,
    agent: Agent,
}

/// What to ask of the bucket or of an object in it.
pub(super) struct Request<'a> {
    method: Method,
    object: &'a str,
    query: Map<'a>,
    headers: Map<'a>,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Without the name of an object: of the bucket itself.
    pub(super) fn new(method: Method, object: &'a str) -> Self {
        Self {
            method,
            object,
            query: Map::new(),
            headers: Map::new(),
            body: &[],
        }
    }

    pub(super) fn query(mut self, name: &'static str, value: &'a str) -> Self {
        self.query.insert(name, value);
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.insert(name, value.into());
        self
    }

    /// The signature leaves the body out; its checksum is signed instead, and compared by the service.
    pub(super) fn body(self, body: &'a [u8]) -> Self {
        let checksum = BASE64.encode(&Md5::digest(body));
        Self { body, ..self }.header("content-md5", checksum)
    }
}

impl Client {
    pub(super) fn new(address: S3Address, settings: S3Settings) -> Self {
        let mut tls = TlsConfig::builder();
        if let Some(authorities) = &address.authorities {
            tls = tls.root_certs(authorities.clone());
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirection needs a signature for its new host: the operator must name the right one.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(settings.connect_timeout))
            .timeout_global(Some(settings.request_timeout))
            // Requests are few and far between: a connection that waited for long may be dead.
            .max_idle_age(Duration::from_secs(5))
            .tls_config(tls.build())
            .build();
        Self {
            address,
            agent: config.into(),
        }
    }

    pub(super) fn send(&self, operation: Operation, request: &Request<'_>) -> PortResult<Reply> {
        let bucket = &self.address.bucket;
        self.exchange(request).map_err(|error| {
            let host = bucket.base_url().authority();
            failure::of_line(operation, host, error)
        })
    }

    fn exchange(&self, request: &Request<'_>) -> Result<Reply, ureq::Error> {
        let S3Address {
            bucket,
            credentials,
            ..
        } = &self.address;
        let url = sign(
            &Timestamp::now(),
            request.method,
            bucket.object_url(request.object),
            credentials.key(),
            credentials.secret(),
            credentials.token(),
            bucket.region(),
            SIGNATURE_SECONDS,
            request.query.iter(),
            request.headers.iter(),
        );
        let mut http = HttpRequest::builder()
            .method(request.method.to_str())
            .uri(url.as_str());
        for (name, value) in request.headers.iter() {
            http = http.header(name, value);
        }
        let mut response = match request.method {
            Method::Put | Method::Post => self.agent.run(http.body(request.body)?)?,
            Method::Get | Method::Head | Method::Delete => self.agent.run(http.body(())?)?,
        };
        let body = response
            .body_mut()
            .with_config()
            .limit(BODY_BYTES_MAX)
            .read_to_vec()?;
        Ok(Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body,
        })
    }
}
