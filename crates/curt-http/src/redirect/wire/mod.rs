//! What a redirect looks like on the wire.
//!
//! A redirect has no body: RFC 9110 asks for a short note with a link, but no browser in use shows it, and without
//! it the answer is 300 bytes of which most are the target.

mod heads;
mod location;

use std::time::Duration;

use axum::body::Body;
use curt_core::{Link, RedirectStatus, ServedLink, UnixMillis, Visibility};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

pub(crate) use heads::{ResponseHeads, finish, http_date};
pub(crate) use location::encode_query;
pub use location::{FORWARDED_QUERY_BYTES_MAX, write_location};

use crate::settings::{HttpSettings, ReferrerPolicy};

const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
const NOT_KEPT: &str = "private, no-store";
/// A year, as long as the lists of browsers ask for.
pub(crate) const SECURE_ONLY: &str = "max-age=31536000";

/// Goes with a redirect to a link's target, which has all its header fields: the workers' redirects have no others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToTarget;

/// The header fields of a redirect, apart from `Location`, `Date` and `Connection`.
#[derive(Clone, Debug)]
pub struct RedirectFields {
    permanent_max_age: Duration,
    permanent_cache_control: HeaderValue,
    referrer_policy: HeaderValue,
    is_secure: bool,
}

impl RedirectFields {
    #[must_use]
    pub fn new(settings: &HttpSettings) -> Self {
        let is_secure = settings.is_secure();
        let settings = &settings.redirect;
        let age = settings.permanent_max_age.as_secs();
        let permanent = format!("private, max-age={age}");
        Self {
            permanent_max_age: settings.permanent_max_age,
            permanent_cache_control: HeaderValue::try_from(permanent)
                .unwrap_or(HeaderValue::from_static(NOT_KEPT)),
            referrer_policy: HeaderValue::from_static(settings.referrer_policy.as_str()),
            is_secure,
        }
    }

    /// Whether the answer at `now` may be kept: only a permanent one, and only if the link lives as long as its copies.
    pub(crate) fn kept(&self, hit: &ServedLink, now: UnixMillis) -> bool {
        hit.status().is_permanent()
            && hit
                .expires_at()
                .is_none_or(|at| at > now.plus(self.permanent_max_age))
    }

    /// In the order in which they are sent.
    pub(crate) fn of(&self, kept: bool) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let cache_control = if kept {
            self.permanent_cache_control.clone()
        } else {
            HeaderValue::from_static(NOT_KEPT)
        };
        let secure = self.is_secure.then_some((
            header::STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static(SECURE_ONLY),
        ));
        [
            (header::CACHE_CONTROL, cache_control),
            (X_ROBOTS_TAG, HeaderValue::from_static("noindex")),
            (header::REFERRER_POLICY, self.referrer_policy.clone()),
            (header::CONTENT_LENGTH, HeaderValue::from_static("0")),
        ]
        .into_iter()
        .chain(secure)
    }

    /// The answer at `now` to `GET` or `HEAD` of a live link, for the router. `query` is the visitor's, without the
    /// `?`.
    #[must_use]
    pub fn respond(
        &self,
        hit: &ServedLink,
        query: Option<&str>,
        now: UnixMillis,
    ) -> Response<Body> {
        let query = query.filter(|_| hit.forward_query());
        self.to(
            hit.status(),
            hit.location_bytes(),
            query,
            self.kept(hit, now),
        )
    }

    /// The answer for a link that is decided about at each click: nobody keeps it, and where it is not for everybody,
    /// the target does not learn of it either.
    pub(crate) fn respond_guarded(&self, link: &Link, query: Option<&str>) -> Response<Body> {
        let query = query.filter(|_| link.forward_query);
        let target = link.target.as_str().as_bytes();
        let mut response = self.to(link.status, target, query, false);
        if link.visibility != Visibility::Public {
            let policy = HeaderValue::from_static(ReferrerPolicy::NoReferrer.as_str());
            let headers = response.headers_mut();
            headers.insert(header::REFERRER_POLICY, policy);
        }
        response
    }

    fn to(
        &self,
        status: RedirectStatus,
        target: &[u8],
        query: Option<&str>,
        kept: bool,
    ) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(ToTarget);
        *response.status_mut() = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::FOUND);
        let headers = response.headers_mut();
        headers.extend(self.of(kept));
        let mut whole = Vec::new();
        write_location(&mut whole, target, query);
        if let Ok(whole) = HeaderValue::from_maybe_shared(bytes::Bytes::from(whole)) {
            headers.insert(header::LOCATION, whole);
        }
        response
    }
}
