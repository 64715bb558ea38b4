//! Cross-origin resource sharing: which other sites' pages may use the API from a browser.
//!
//! | request to `/api/…` | answer |
//! |---|---|
//! | from a page of an origin that is allowed | may be read by the page, and is made without the request's cookies |
//! | preflight from such a page | 204 with what the page may send |
//! | from any other page, or from a program | as without CORS |
//!
//! Such pages show an API key. `Access-Control-Allow-Credentials` is never sent, and cookies are dropped before anything
//! looks at them: no page of another site reads with the session of its visitor, and what a cookie may change is decided
//! by [`site`](crate::caller::site) as before. Redirects are not concerned.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, COOKIE,
    ORIGIN,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::Url;

use crate::caller::site::SendingSite;
use crate::state::App;
use crate::vary::add_vary;

const API: &str = "/api/";
const METHODS: &str = "GET, HEAD, POST, PATCH, DELETE";
/// What a request may have beyond what every page may send.
const REQUEST_HEADERS: &str = "authorization, x-api-key, content-type, idempotency-key, if-match, if-none-match, \
    last-event-id, x-request-id";
/// What a page may read beyond type and length.
const RESPONSE_HEADERS: &str = "etag, location, link, allow, content-disposition, idempotent-replayed, ratelimit, \
    ratelimit-policy, retry-after, www-authenticate, x-request-id";
/// Two hours, the most that Chromium keeps a preflight for.
const PREFLIGHT_SECONDS: &str = "7200";

/// The origins whose pages may use the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CorsOrigins {
    #[default]
    None,
    /// All of them.
    Any,
    Listed(Vec<Box<str>>),
}

impl CorsOrigins {
    /// Reads origins as browsers write them, or `*` alone.
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        match texts {
            [] => Ok(Self::None),
            [any] if any == "*" => Ok(Self::Any),
            listed if listed.iter().any(|text| text == "*") => {
                Err("\"*\" means every origin: write it alone, or leave it out".to_owned())
            }
            listed => {
                let origins = listed.iter().map(|text| check_origin(text));
                Ok(Self::Listed(origins.collect::<Result<_, _>>()?))
            }
        }
    }

    /// `Access-Control-Allow-Origin` for a page of this origin.
    fn grant(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        match self {
            Self::None => None,
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::Listed(listed) => {
                let is_listed = listed.iter().any(|one| one.as_bytes() == origin.as_bytes());
                is_listed.then(|| origin.clone())
            }
        }
    }
}

/// Browsers send origins in one spelling, so that any other would never match.
fn check_origin(text: &str) -> Result<Box<str>, String> {
    let example = "write scheme, host and port alone, as \"https://app.example.com\", or \"*\"";
    // Patterns such as https://*.example.com are hosts to a parser, and no page has them.
    let is_whole = |url: &Url| url.has_host() && !text.contains('*');
    let Some(url) = Url::parse(text).ok().filter(is_whole) else {
        return Err(format!("{text:?} is not an origin: {example}"));
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "{text:?} is no origin of pages: it must begin with http:// or https://"
        ));
    }
    match url.origin().ascii_serialization() {
        origin if origin == text => Ok(text.into()),
        origin => Err(format!(
            "{text:?} is not an origin as browsers send it: write {origin:?}"
        )),
    }
}

/// What CORS means for one request.
#[derive(Debug, Default)]
pub(crate) struct Cors {
    /// Whether the answer may depend on the origin.
    is_on: bool,
    granted: Option<HeaderValue>,
    is_preflight: bool,
}

impl Cors {
    /// Reads the request before anything else does, and takes the cookies from one whose answer another site may read.
    pub(crate) fn read(app: &App, request: &mut Request) -> Self {
        let origins = &app.settings.api.cors_origins;
        if *origins == CorsOrigins::None || !request.uri().path().starts_with(API) {
            return Self::default();
        }
        let headers = request.headers();
        let mut named = headers.get_all(ORIGIN).iter();
        let origin = named.next().filter(|_| named.next().is_none());
        let is_own = SendingSite::from_headers(headers, app.public.base()) == SendingSite::Own;
        let granted = origin
            .filter(|_| !is_own)
            .and_then(|origin| origins.grant(origin));
        let is_preflight = granted.is_some()
            && request.method() == Method::OPTIONS
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if granted.is_some() {
            request.headers_mut().remove(COOKIE);
        }
        Self {
            is_on: true,
            granted,
            is_preflight,
        }
    }

    /// The answer to a preflight.
    pub(crate) fn preflight(&self) -> Option<Response> {
        let fields = [
            (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
            (ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS),
        ];
        self.is_preflight
            .then(|| (StatusCode::NO_CONTENT, fields).into_response())
    }

    /// Says who may read the answer, problems included.
    pub(crate) fn finish(self, headers: &mut HeaderMap) {
        if self.is_on {
            add_vary(headers, "origin");
        }
        let Some(granted) = self.granted else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, granted);
        if !self.is_preflight {
            let exposed = HeaderValue::from_static(RESPONSE_HEADERS);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<CorsOrigins, String> {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        CorsOrigins::parse(&texts)
    }

    #[test]
    fn origins_are_taken_as_browsers_send_them_and_no_other_way() {
        assert_eq!(parse(&[]), Ok(CorsOrigins::None));
        assert_eq!(parse(&["*"]), Ok(CorsOrigins::Any));
        for good in [
            "https://app.example.com",
            "http://localhost:5173",
            "https://xn--mnchen-3ya.example",
            "http://[::1]:8000",
        ] {
            assert!(parse(&[good]).is_ok(), "{good}");
        }
        for (wrong, advice) in [
            ("app.example.com", "https://app.example.com"),
            ("null", "https://app.example.com"),
            ("", "https://app.example.com"),
            ("https://*.example.com", "https://app.example.com"),
            ("https://app.example.com/", "\"https://app.example.com\""),
            ("https://app.example.com:443", "\"https://app.example.com\""),
            ("https://App.Example.com", "\"https://app.example.com\""),
            ("https://app.example.com/x", "\"https://app.example.com\""),
            ("https://me@app.example.com", "\"https://app.example.com\""),
            ("ftp://app.example.com", "http://"),
        ] {
            let said = parse(&[wrong]).expect_err(wrong);
            assert!(said.contains(advice), "{wrong}: {said}");
        }
        assert!(parse(&["*", "https://app.example.com"]).is_err());
    }
}
