//! Answers in gzip, for clients that take them.
//!
//! | answer | compressed |
//! |---|---|
//! | JSON, CSV, pages, texts of [`SIZE_MIN`] and more | yes; those that are in memory at once, exports as they are read |
//! | the OpenAPI document, style sheet, script | once for all requests ([`StaticText`]) |
//! | to a browser with a session | no, but where the text is the same whatever is asked for ([`NotReflecting`]) |
//! | with an `ETag`: single links | no |
//! | live feeds, redirects, what is encoded already | no |
//!
//! **Sessions.** The length of a compressed answer tells whether two parts of it are alike. Whoever can have a browser
//! repeat a request, put guesses into its answer and see how long it is, could guess what else is in it (BREACH): a
//! form's token, private links. Browsers send cookies with requests that other sites cause, and API keys never. So no
//! answer is compressed that may have been made for a session. Pages without one hold no secret.
//!
//! **Entity tags.** A link's tag is its revision and is compared strongly by `If-Match`. A compressed answer would need
//! another one, by which no edit would be possible; and single links are short.

mod accepted;
mod gzip;
mod static_text;

use axum::body::HttpBody;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};

pub(crate) use self::accepted::accepts_gzip;
pub(crate) use self::static_text::StaticText;
use crate::caller::cookie;
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::vary::add_vary;

/// Shorter answers fit into one packet with their head, and arrive no sooner.
pub(crate) const SIZE_MIN: u64 = 1_024;

pub(crate) const ACCEPT_ENCODING: &str = "accept-encoding";

/// Media types that become much shorter. Not `text/event-stream`: events would wait in the compressor.
const TYPES: [&str; 8] = [
    "application/json",
    "application/problem+json",
    "application/openmetrics-text",
    "text/csv",
    "text/css",
    "text/html",
    "text/javascript",
    "text/plain",
];

/// Goes with a response whose text does not depend on anything that a request says, so that nobody can put guesses into
/// it: it is compressed for sessions, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotReflecting;

/// What a request says about compression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compression {
    is_on: bool,
    accepts_gzip: bool,
    has_session: bool,
}

impl Compression {
    pub(crate) fn read(app: &App, headers: &HeaderMap) -> Self {
        Self {
            is_on: app.settings.api.compression,
            accepts_gzip: accepts_gzip(headers),
            has_session: cookie::session(headers, app.public.base()).is_some(),
        }
    }

    /// Compresses the answer, if it is worth it and the client takes it.
    pub(crate) async fn apply(self, mut response: Response) -> Response {
        if !self.is_on || !is_worth_it(&response) {
            return response;
        }
        add_vary(response.headers_mut(), ACCEPT_ENCODING);
        let is_fixed = response.extensions().get::<NotReflecting>().is_some();
        if !self.accepts_gzip || self.has_session && !is_fixed {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let compressed = match body.size_hint().exact() {
            Some(_) => gzip::compress_body(body).await,
            None => Ok(gzip::stream(body)),
        };
        let Ok(body) = compressed else {
            return Problem::new(ProblemCode::Internal).into_response();
        };
        parts.headers.remove(CONTENT_LENGTH);
        let encoding = HeaderValue::from_static("gzip");
        parts.headers.insert(CONTENT_ENCODING, encoding);
        Response::from_parts(parts, body)
    }
}

fn is_worth_it(response: &Response) -> bool {
    let headers = response.headers();
    let has_content = !matches!(
        response.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT
    );
    let is_long = response
        .body()
        .size_hint()
        .exact()
        .is_none_or(|bytes| bytes >= SIZE_MIN);
    let is_fixed = headers.contains_key(ETAG)
        || headers.contains_key(CONTENT_ENCODING)
        || text(headers.get(CACHE_CONTROL)).contains("no-transform");
    has_content && is_long && !is_fixed && has_listed_type(headers)
}

fn has_listed_type(headers: &HeaderMap) -> bool {
    let named = text(headers.get(CONTENT_TYPE));
    let media_type = named.split(';').next().unwrap_or_default().trim();
    TYPES
        .iter()
        .any(|listed| listed.eq_ignore_ascii_case(media_type))
}

fn text(value: Option<&HeaderValue>) -> &str {
    value.map_or("", |value| value.to_str().unwrap_or(""))
}
