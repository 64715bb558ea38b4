//! Pages of lists: every list takes `cursor` and `limit`, and answers with `next`, a text, and its address in the `Link`
//! header; the last page has none.

use axum::Json;
use axum::response::{IntoResponse, Response};
use curt_core::limits::PAGE_ACCOUNTS_MAX;
use http::header::LINK;
use http::{HeaderValue, Uri};
use serde::Serialize;
use url::form_urlencoded;
use utoipa::IntoParams;

use super::query::{limit, number};
use crate::problem::{Problem, ProblemCode};

// The parameters below can hold only literal numbers.
const _: () = assert!(PAGE_ACCOUNTS_MAX == 200);

/// The parameters of a page, as the OpenAPI document shows them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct PageParams {
    /// How many entries a page has at most; 50 unless said otherwise.
    #[param(nullable = false, minimum = 1, maximum = 200, example = 50)]
    limit: Option<u16>,
    /// The `next` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of a list whose entries have rising or falling numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest {
    /// The number of the last entry of the page before.
    pub(crate) after: Option<u64>,
    limit: usize,
}

impl PageRequest {
    pub(crate) fn parse(cursor: Option<&str>, page_limit: Option<&str>) -> Result<Self, Problem> {
        // Beyond what a signed column holds is no number that was given out.
        let position = |cursor| number(cursor).filter(|at| i64::try_from(*at).is_ok());
        let after = cursor.map(|cursor| position(cursor).ok_or_else(invalid_cursor));
        Ok(Self {
            after: after.transpose()?,
            limit: limit(page_limit)?,
        })
    }

    /// How many entries to read: one beyond the page tells whether there is a next.
    pub(crate) fn read_max(self) -> usize {
        self.limit + 1
    }

    /// Cuts what was read to the page. Returns the cursor of the next one.
    pub(crate) fn cut<T>(self, read: &mut Vec<T>, number: impl Fn(&T) -> u64) -> Option<String> {
        let has_next = read.len() > self.limit;
        read.truncate(self.limit);
        let last = read.last().filter(|_| has_next);
        last.map(|last| number(last).to_string())
    }
}

pub(crate) fn invalid_cursor() -> Problem {
    let message = "The cursor is not one of this list: start from the first page.";
    Problem::invalid_field("cursor", "cursor_invalid", message)
}

/// The answer with a page, and with the address of the next one, if there is one.
pub(crate) fn page(
    uri: &Uri,
    next: Option<&str>,
    body: &impl Serialize,
) -> Result<Response, Problem> {
    let mut response = Json(body).into_response();
    if let Some(next) = next {
        let query = with_cursor(uri.query().unwrap_or_default(), next);
        let link = format!("<{}?{query}>; rel=\"next\"", uri.path());
        let link = HeaderValue::from_str(&link).map_err(|_| Problem::new(ProblemCode::Internal))?;
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

/// The same query at another position.
fn with_cursor(text: &str, cursor: &str) -> String {
    let mut next = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        if name != "cursor" {
            next.append_pair(&name, &value);
        }
    }
    next.append_pair("cursor", cursor);
    next.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_keeps_the_filters() {
        assert_eq!(
            with_cursor("tag=a%26b&cursor=old&limit=5", "n w"),
            "tag=a%26b&limit=5&cursor=n+w"
        );
    }

    #[test]
    fn a_full_last_page_has_no_next() {
        let asked = PageRequest::parse(None, Some("2")).unwrap();
        let mut read = vec![4, 7, 9];
        assert_eq!(asked.cut(&mut read, |at| *at).as_deref(), Some("7"));
        assert_eq!(read, [4, 7]);
        assert_eq!(asked.cut(&mut read, |at| *at), None);
    }

    #[test]
    fn cursors_are_plain_numbers() {
        for cursor in ["", "x", "-1", "+1", "9223372036854775808"] {
            let problem = PageRequest::parse(Some(cursor), None).unwrap_err();
            assert_eq!(problem.errors()[0].code, "cursor_invalid", "{cursor:?}");
        }
    }
}
