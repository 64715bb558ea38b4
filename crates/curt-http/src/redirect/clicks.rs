//! Writing clicks down, on the redirect path and beside it.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use curt_clicks::capture::Capture;
use curt_clicks::classify::ClickRules;
use curt_clicks::record::{ClickRecord, Method, Outcome, UtmText};
use curt_core::{Attribution, DomainId, UnixMillis};
use http::header::{ACCEPT_LANGUAGE, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName};

use crate::redirect::{FORWARDED_QUERY_BYTES_MAX, Visitor};

/// The click writers of one server: one for each redirect worker, and one that the router's handlers share.
pub struct Clicks {
    pub workers: Vec<Capture>,
    pub router: Capture,
}

/// The click writer of the router. Its clicks are the few that the workers did not answer.
pub struct RouterClicks(Mutex<Capture>);

/// What was asked for, and what came of it.
#[derive(Clone, Copy)]
pub(crate) struct RequestedLink<'a> {
    pub(crate) key: &'a str,
    pub(crate) generation: u32,
    pub(crate) outcome: Outcome,
    /// Whose the link is and which tags it has now.
    pub(crate) attribution: Attribution<'a>,
    /// Of the address that the visitor is sent to.
    pub(crate) utm: UtmText<'a>,
}

/// The UTM parameters of a target and of the visitor's query, which is given if the link forwards it.
pub(crate) fn find_utm<'a>(target: &'a [u8], query: Option<&'a str>) -> UtmText<'a> {
    UtmText::find(
        target,
        query.filter(|query| query.len() <= FORWARDED_QUERY_BYTES_MAX),
    )
}

impl RouterClicks {
    #[must_use]
    pub fn new(capture: Capture) -> Self {
        Self(Mutex::new(capture))
    }

    pub(crate) fn record(&self, asked: RequestedLink<'_>, client: &Client, now: UnixMillis) {
        let click = client.click(asked, now);
        let mut capture = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A full spool counts what it drops.
        let _written = capture.record(&click);
    }
}

/// A redirect worker's click.
pub(crate) fn by_worker<'a>(
    asked: RequestedLink<'a>,
    visitor: &Visitor<'a>,
    address: IpAddr,
    now: UnixMillis,
) -> ClickRecord<'a> {
    let method = if visitor.head {
        Method::Head
    } else {
        Method::Get
    };
    click(asked, visitor, method, address, now)
}

fn click<'a>(
    asked: RequestedLink<'a>,
    visitor: &Visitor<'a>,
    method: Method,
    address: IpAddr,
    now: UnixMillis,
) -> ClickRecord<'a> {
    ClickRecord {
        at: now,
        domain: DomainId::DEFAULT,
        key: asked.key.as_bytes(),
        generation: asked.generation,
        outcome: asked.outcome,
        method,
        prefetch: visitor.prefetch,
        address,
        agent: visitor.agent,
        referrer: visitor.referrer,
        language: visitor.language,
        utm: asked.utm,
        attribution: asked.attribution,
    }
}

/// What a request at the router tells about its visitor.
#[derive(Clone)]
pub(crate) struct Client {
    method: Method,
    address: IpAddr,
    headers: HeaderMap,
}

impl Client {
    pub(crate) fn of(method: &http::Method, headers: &HeaderMap, address: IpAddr) -> Self {
        Self {
            method: match *method {
                http::Method::GET => Method::Get,
                http::Method::HEAD => Method::Head,
                _ => Method::Other,
            },
            address,
            headers: headers.clone(),
        }
    }

    /// Whether it is a person's, who alone is counted where a link has only so many clicks.
    pub(crate) fn is_human(
        &self,
        rules: &ClickRules,
        asked: RequestedLink<'_>,
        now: UnixMillis,
    ) -> bool {
        rules.counts_as_human(&self.click(asked, now))
    }

    fn click<'a>(&'a self, asked: RequestedLink<'a>, now: UnixMillis) -> ClickRecord<'a> {
        click(asked, &self.visitor(), self.method, self.address, now)
    }

    fn visitor(&self) -> Visitor<'_> {
        let text = |name: HeaderName| {
            let last = self.headers.get_all(name).into_iter().next_back();
            last.map_or(&b""[..], |value| value.as_bytes())
        };
        let mut visitor = Visitor {
            agent: text(USER_AGENT),
            referrer: text(REFERER),
            language: text(ACCEPT_LANGUAGE),
            head: self.method == Method::Head,
            ..Visitor::default()
        };
        for name in ["sec-purpose", "purpose", "x-moz"] {
            for value in self.headers.get_all(name) {
                visitor.note_purpose(value.as_bytes());
            }
        }
        visitor
    }
}
