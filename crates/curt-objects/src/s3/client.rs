use std::time::Duration;

use curt_core::PortResult;
use jiff::Timestamp;
use ureq::Agent;
use ureq::http::{HeaderMap, Method, Request as HttpRequest};
use ureq::tls::TlsConfig;

use super::address::Route;
use super::sign::{Unsigned, encode};
use super::{S3Settings, failure};
use crate::key_layout::Asked;

/// Larger answers are refused: a block of keys is at most this large.
const BODY_BYTES_MAX: u64 = 65 << 20;

/// Sends signed requests, and blocks while it does.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) route: Route,
    agent: Agent,
}

/// What to ask of the bucket or of an object in it.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Empty: the bucket itself.
    pub(super) object: &'a str,
    pub(super) query: &'a [(&'a str, &'a str)],
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: &'a [u8],
}

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl<'a> Request<'a> {
    pub(super) fn new(method: Method, object: &'a str) -> Self {
        Self {
            method,
            object,
            query: &[],
            headers: Vec::new(),
            body: &[],
        }
    }
}

impl Client {
    pub(super) fn new(route: Route, settings: S3Settings) -> Self {
        let mut tls = TlsConfig::builder();
        if let Some(authorities) = &route.authorities {
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
            route,
            agent: config.into(),
        }
    }

    pub(super) fn send(&self, asked: Asked, request: Request<'_>) -> PortResult<Reply> {
        let path = format!("{}{}", self.route.bucket_path, encode(request.object, true));
        let query = canonical(request.query);
        let unsigned = Unsigned {
            method: request.method.as_str(),
            host: &self.route.host,
            path: &path,
            query: &query,
            headers: request.headers,
            body: request.body,
        };
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let headers = unsigned.sign(&self.route.credentials, &self.route.region, &time);
        let uri = format!("{}{path}?{query}", self.route.origin);
        let mut http = HttpRequest::builder().method(request.method).uri(uri);
        for (name, value) in headers {
            http = http.header(name, value);
        }
        self.exchange(http, request.body)
            .map_err(|error| failure::of_line(asked, &self.route.host, error))
    }

    fn exchange(
        &self,
        http: ureq::http::request::Builder,
        body: &[u8],
    ) -> Result<Reply, ureq::Error> {
        let has_body = http
            .method_ref()
            .is_some_and(|method| [Method::PUT, Method::POST].contains(method));
        let mut response = if has_body {
            self.agent.run(http.body(body)?)?
        } else {
            self.agent.run(http.body(())?)?
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

/// Encoded, and sorted by name, as it is signed.
fn canonical(query: &[(&str, &str)]) -> String {
    let mut pairs: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name, false), encode(value, false)))
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}
