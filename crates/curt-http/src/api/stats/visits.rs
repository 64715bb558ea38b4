//! Visits one by one: a page, or all of them as a file.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use curt_core::limits::PAGE_VISITS_MAX;
use curt_core::ports::{VisitPage, VisitQuery};
use curt_core::{ErrorKind, PortError};
use futures_util::stream;
use http::HeaderValue;
use http::header::LINK;

use super::csv::{self, Lines};
use super::query::VisitsQuery;
use super::subject::Subject;
use super::visit_body::{VisitBody, VisitsBody};
use crate::api::list_query::with_cursor;
use crate::problem::{Problem, ProblemCode};

const FILE: &str = "attachment; filename=\"visits.csv\"";

/// One page, with the address of the next one.
pub(super) async fn page(
    subject: &Subject,
    query: VisitsQuery,
    path: &str,
    text: &str,
) -> Result<Response, Problem> {
    let had_cursor = query.cursor.is_some();
    let page = subject.reports.visits(&of(subject, query)).await;
    let page = page.map_err(|error| refused(error, had_cursor))?;
    let next = page.next.clone();
    let body = VisitsBody {
        visits: page.visits.into_iter().map(VisitBody::from).collect(),
        next: page.next.map(Into::into),
    };
    let mut response = Json(body).into_response();
    if let Some(next) = next {
        let link = format!("<{path}?{}>; rel=\"next\"", with_cursor(text, &next));
        let link = HeaderValue::from_str(&link).map_err(|_| Problem::new(ProblemCode::Internal))?;
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

/// All visits of the range, page by page as the client takes them. The first page is read before the answer begins, so
/// that a store that is away is a problem and not a file that breaks off.
pub(super) async fn file(subject: Subject, query: VisitsQuery) -> Result<Response, Problem> {
    let query = VisitsQuery {
        limit: PAGE_VISITS_MAX,
        cursor: None,
        ..query
    };
    let mut query = of(&subject, query);
    let first = subject.reports.visits(&query).await?;
    let mut lines = Lines::new(&VisitBody::COLUMNS);
    query.cursor = first.next.clone();
    push(&mut lines, first);
    if query.cursor.is_none() {
        return Ok(csv::file(FILE, Body::from(lines.into_text())));
    }
    let reports = Arc::clone(&subject.reports);
    let head = stream::iter([Ok(lines.into_text())]);
    let rest = stream::try_unfold(query, move |mut query| {
        let reports = Arc::clone(&reports);
        async move {
            if query.cursor.is_none() {
                return Ok::<_, PortError>(None);
            }
            let page = reports.visits(&query).await?;
            query.cursor = page.next.clone();
            let mut lines = Lines::empty();
            push(&mut lines, page);
            Ok(Some((lines.into_text(), query)))
        }
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(head, rest));
    Ok(csv::file(FILE, body))
}

fn push(lines: &mut Lines, page: VisitPage) {
    for visit in page.visits {
        lines.push(&VisitBody::from(visit).cells());
    }
}

fn of(subject: &Subject, query: VisitsQuery) -> VisitQuery {
    VisitQuery {
        subject: subject.clicks.clone(),
        from: query.range.from(),
        before: query.range.counted_before(),
        filter: query.filter,
        cursor: query.cursor,
        limit: query.limit,
    }
}

fn refused(error: PortError, had_cursor: bool) -> Problem {
    if had_cursor && error.kind == ErrorKind::Invalid {
        let message = "This is not a cursor that the same list gave out.";
        return Problem::invalid_field("cursor", "value", message);
    }
    error.into()
}
