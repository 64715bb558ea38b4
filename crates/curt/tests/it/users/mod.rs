//! What accounts, API keys, limits and private links promise, seen from outside and under pressure.

mod blocklist;
mod boundary;
mod browser;
mod guesses;
mod revocation;
mod scanning;
mod secrets;
mod timing;
mod waiting;

pub(crate) use browser::Browser;

use std::time::Duration;

use curt_testkit::http::Request;
use serde_json::{Value, json};

use crate::api::Answer;
use crate::site::Site;

/// Lets tests come from any address, as a proxy on this machine would report them.
const BELIEVED_PROXY: &str = "server.trusted_proxies=127.0.0.1/32";

/// Runs a command that must succeed, and returns what it printed.
fn run(site: &Site, arguments: &[&str]) -> String {
    let printed = site.app().run(arguments).unwrap();
    printed.trim().to_owned()
}

/// Another API key of a user who is there, with further options of `curt api-key add`.
fn new_key(site: &Site, email: &str, options: &[&str]) -> String {
    let name = format!("{:x}", rand::random::<u64>());
    let arguments = ["api-key", "add", &name, "--user", email];
    run(site, &[&arguments[..], options].concat())
}

/// A request as it comes from elsewhere through the proxy.
fn from(address: &str, request: Request) -> Request {
    request.header("X-Forwarded-For", address)
}

fn create_request(link: &Value) -> Request {
    Request::post("/api/v1/links").json(link)
}

fn plain_link() -> Value {
    json!({ "target": "https://example.com/" })
}

/// How long a refusal asks to wait.
fn told_to_wait(answer: &Answer) -> Duration {
    assert_eq!(answer.status, 429, "{answer:?}");
    let seconds = answer
        .header("retry-after")
        .and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or_else(|| panic!("no Retry-After: {answer:?}")))
}
