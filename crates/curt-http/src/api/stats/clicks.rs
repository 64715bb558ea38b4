//! Clicks one by one: a page, or all of them as a file.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use curt_clicks::report::Reports;
use curt_core::limits::PAGE_CLICKS_MAX;
use curt_core::ports::{ClickPage, ClickQuery};
use curt_core::{ErrorKind, PortError, PortResult};
use futures_util::stream;
use http::Uri;

use super::click_body::{ClickBody, ClicksBody};
use super::query::ClicksQuery;
use super::subject::Subject;
use crate::api::csv_file::{self as csv, Lines};
use crate::api::paging;
use crate::problem::Problem;
use crate::scans::Export;

const FILE: &str = "attachment; filename=\"clicks.csv\"";

/// One page, with the address of the next one.
pub(super) async fn page(
    subject: &Subject,
    query: ClicksQuery,
    uri: &Uri,
) -> Result<Response, Problem> {
    let had_cursor = query.cursor.is_some();
    let (reports, query) = (Arc::clone(&subject.reports), of(subject, query));
    let reading = async move { reports.clicks(&query).await };
    let page = subject.scans.read(subject.asker, reading).await?;
    let page = page.map_err(|error| refused(error, had_cursor))?;
    let next = page.next.clone();
    let body = ClicksBody {
        clicks: page.clicks.into_iter().map(ClickBody::from).collect(),
        next: page.next.map(Into::into),
    };
    paging::page(uri, next.as_deref(), &body)
}

/// All clicks of the range, page by page as the client takes them. The first page is read before the answer begins, so
/// that a store that is away is a problem and not a file that breaks off.
pub(super) async fn file(subject: Subject, query: ClicksQuery) -> Result<Response, Problem> {
    let query = ClicksQuery {
        limit: PAGE_CLICKS_MAX,
        cursor: None,
        ..query
    };
    let mut query = of(&subject, query);
    let export = subject.scans.begin_export(subject.asker)?;
    let first = read_page(&export, &subject.reports, &query).await??;
    let mut lines = Lines::new(&ClickBody::COLUMNS);
    query.cursor = first.next.clone();
    push(&mut lines, first);
    if query.cursor.is_none() {
        return Ok(csv::file(FILE, Body::from(lines.into_text())));
    }
    let reports = Arc::clone(&subject.reports);
    let head = stream::iter([Ok(lines.into_text())]);
    let rest = stream::try_unfold((query, export), move |(mut query, export)| {
        let reports = Arc::clone(&reports);
        async move {
            if query.cursor.is_none() {
                return Ok::<_, io::Error>(None);
            }
            let page = read_page(&export, &reports, &query).await;
            let page = page.map_err(|_| io::ErrorKind::Other)?;
            let page = page.map_err(io::Error::other)?;
            query.cursor = page.next.clone();
            let mut lines = Lines::empty();
            push(&mut lines, page);
            Ok(Some((lines.into_text(), (query, export))))
        }
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(head, rest));
    Ok(csv::file(FILE, body))
}

async fn read_page(
    export: &Export,
    reports: &Arc<Reports>,
    query: &ClickQuery,
) -> Result<PortResult<ClickPage>, Problem> {
    let (reports, query) = (Arc::clone(reports), query.clone());
    export
        .read(async move { reports.clicks(&query).await })
        .await
}

fn push(lines: &mut Lines, page: ClickPage) {
    for click in page.clicks {
        lines.push(&ClickBody::from(click).cells());
    }
}

fn of(subject: &Subject, query: ClicksQuery) -> ClickQuery {
    ClickQuery {
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
        return paging::invalid_cursor();
    }
    error.into()
}
