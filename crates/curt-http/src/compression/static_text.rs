//! Texts that are the same for everybody.

use std::sync::OnceLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};

use super::{ACCEPT_ENCODING, SIZE_MIN, accepts_gzip, gzip};
use crate::state::App;
use crate::vary::add_vary;

/// A text that is compressed at the first request that takes it so, and kept.
#[derive(Clone, Debug)]
pub(crate) struct StaticText {
    plain: Bytes,
    /// Empty: it could not be compressed.
    gzip: OnceLock<Bytes>,
}

impl StaticText {
    pub(crate) fn new(plain: impl Into<Bytes>) -> Self {
        Self {
            plain: plain.into(),
            gzip: OnceLock::new(),
        }
    }

    /// The form that the client gets.
    pub(crate) fn choose(&self, app: &App, headers: &HeaderMap) -> StaticForm<'_> {
        let has_both = app.settings.api.compression && self.plain.len() as u64 >= SIZE_MIN;
        let gzip = (has_both && accepts_gzip(headers)).then(|| self.compressed());
        StaticForm {
            plain: &self.plain,
            gzip: gzip.filter(|gzip| !gzip.is_empty()),
            has_both,
        }
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.plain).unwrap()
    }

    fn compressed(&self) -> &Bytes {
        self.gzip.get_or_init(|| {
            let compressed = gzip::compress_once(&self.plain);
            compressed.map_or_else(|_| Bytes::new(), Bytes::from)
        })
    }
}

pub(crate) struct StaticForm<'a> {
    plain: &'a Bytes,
    gzip: Option<&'a Bytes>,
    has_both: bool,
}

impl StaticForm<'_> {
    pub(crate) fn is_gzip(&self) -> bool {
        self.gzip.is_some()
    }

    pub(crate) fn respond(&self) -> Response {
        let mut response = self.gzip.unwrap_or(self.plain).clone().into_response();
        self.describe(response.headers_mut());
        response
    }

    /// Adds what tells the forms apart, for answers without a body, too.
    pub(crate) fn describe(&self, headers: &mut HeaderMap) {
        if self.has_both {
            add_vary(headers, ACCEPT_ENCODING);
        }
        if self.is_gzip() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
}
