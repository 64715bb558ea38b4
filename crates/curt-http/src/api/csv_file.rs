//! Answers that are a file of CSV.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use curt_clicks::report::csv;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

/// Lines of CSV that are put together one after the other.
pub(crate) struct Lines(String);

impl Lines {
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut text = String::new();
        csv::line(&mut text, columns.iter().copied());
        Self(text)
    }

    pub(crate) fn empty() -> Self {
        Self(String::new())
    }

    pub(crate) fn push<const N: usize>(&mut self, cells: &[String; N]) {
        csv::line(&mut self.0, cells.iter().map(String::as_str));
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// The name is ours: nothing in it comes from a stranger.
pub(crate) fn file(name: &'static str, body: Body) -> Response {
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/csv; charset=utf-8"),
        ),
        (CONTENT_DISPOSITION, HeaderValue::from_static(name)),
    ];
    (headers, body).into_response()
}
