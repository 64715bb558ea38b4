//! `GET /{key}`.

use std::net::SocketAddr;
use std::sync::Arc;

use super::answer::Answer;
use super::engine::Traffic;
use super::report::{Failure, LoadReport};
use super::{LoadError, Plan, measured, mix};
use crate::keys::{KeySet, Pick, Sampler};
use crate::random::Random;

/// How much a request carries besides the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The `Host` header alone.
    #[default]
    Minimal,
    /// Eleven headers, as a browser sends them: about half a kilobyte.
    Browser,
    /// Headers of many browsers, apps and bots in turn.
    Mixed,
}

impl Shape {
    /// Those that servers are compared with.
    pub const BOTH: [Self; 2] = [Self::Minimal, Self::Browser];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Browser => "browser",
            Self::Mixed => "mixed",
        }
    }

    /// What follows the key; each request takes one of them.
    fn headers(self, addr: SocketAddr) -> Vec<Vec<u8>> {
        let host = format!(" HTTP/1.1\r\nHost: {addr}\r\n");
        match self {
            Self::Minimal => vec![(host + "\r\n").into_bytes()],
            Self::Browser => vec![(host + BROWSER_HEADERS + "\r\n").into_bytes()],
            Self::Mixed => mix::header_variants(&addr.to_string()),
        }
    }
}

const BROWSER_HEADERS: &str = "\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
Accept-Language: en-GB,en;q=0.8,de-DE;q=0.5,de;q=0.3\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Referer: https://news.example.org/2026/11/a-story\r\n\
Connection: keep-alive\r\n\
Upgrade-Insecure-Requests: 1\r\n\
Sec-Fetch-Dest: document\r\n\
Sec-Fetch-Mode: navigate\r\n\
Sec-Fetch-Site: cross-site\r\n";

/// Every so many answers the whole `Location` is compared, and not only looked for.
const COMPARE_EVERY: u64 = 64;

/// A load of redirects.
#[derive(Clone, Debug)]
pub struct RedirectLoad {
    pub plan: Plan,
    pub keys: Arc<KeySet>,
    pub pick: Pick,
    pub shape: Shape,
    /// Where a key must lead, if that is known; compared on a sample of the answers.
    pub target_of: Option<fn(&str) -> String>,
}

impl RedirectLoad {
    /// Zipf(1.0) over `keys` with minimal requests.
    #[must_use]
    pub fn new(plan: Plan, keys: Arc<KeySet>) -> Self {
        Self {
            plan,
            pick: Pick::zipf(&keys),
            keys,
            shape: Shape::Minimal,
            target_of: None,
        }
    }
}

/// Runs a load of redirects to its end.
pub fn redirect(load: &RedirectLoad) -> Result<LoadReport, LoadError> {
    if load.keys.is_empty() {
        return Err(LoadError::NoKeys);
    }
    let mut traffic = Redirects::new(load);
    measured(&load.plan, &mut traffic)
}

pub(super) struct Redirects<'a> {
    keys: &'a KeySet,
    sampler: Sampler,
    after_key: Vec<Vec<u8>>,
    variants: Random,
    target_of: Option<fn(&str) -> String>,
    judged: u64,
}

impl<'a> Redirects<'a> {
    pub(super) fn new(load: &'a RedirectLoad) -> Self {
        Self {
            keys: &load.keys,
            sampler: Sampler::new(load.pick.clone(), load.keys.len(), load.plan.seed),
            after_key: load.shape.headers(load.plan.addr),
            variants: Random::new(!load.plan.seed),
            target_of: load.target_of,
            judged: 0,
        }
    }
}

impl Traffic for Redirects<'_> {
    fn compose(&mut self, out: &mut Vec<u8>) -> u64 {
        let place = self.sampler.draw();
        out.extend_from_slice(b"GET /");
        out.extend_from_slice(self.keys.get(place));
        let variant = match self.after_key.len() {
            1 => 0,
            variants => self.variants.below(variants as u64) as usize,
        };
        out.extend_from_slice(&self.after_key[variant]);
        place as u64
    }

    fn judge(&mut self, ticket: u64, answer: &Answer<'_>) -> Result<u64, Failure> {
        if !matches!(answer.status, 301 | 302 | 307 | 308) {
            return Err(Failure::Status(answer.status));
        }
        let location = answer.location.ok_or(Failure::NoLocation)?;
        self.judged += 1;
        if let Some(target_of) = self.target_of
            && self.judged % COMPARE_EVERY == 1
            && target_of(&self.keys.text(ticket as usize)).as_bytes() != location
        {
            return Err(Failure::WrongLocation);
        }
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_sends_eleven_headers_in_half_a_kilobyte() {
        let headers = Shape::Browser.headers(([127, 0, 0, 1], 8080).into());
        let text = format!("GET /abcdefg{}", String::from_utf8_lossy(&headers[0]));
        assert!((500..=560).contains(&text.len()), "{}", text.len());
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        assert!(request.parse(text.as_bytes()).unwrap().is_complete());
        assert_eq!(request.headers.len(), 11);
    }
}
