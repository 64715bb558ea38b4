//! The outermost layer: what holds for every answer of the router.
//!
//! It gives the request an id, lets pages of [other origins](crate::cors) in, catches panics, shows problems as pages to
//! browsers, [compresses](crate::compression), sets the headers that nothing may leave without, deals with what is
//! [left](super::leftover) of the body, and counts.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use curt_core::limits::HTTP_URI_BYTES_MAX;
use curt_core::names::event;
use futures_util::FutureExt;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, REFERER, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, USER_AGENT, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use super::leftover::SharedBody;
use crate::access_log::{AccessEntry, shortened};
use crate::caller::{KnownUser, address};
use crate::compression::Compression;
use crate::cors::Cors;
use crate::metrics::{RequestLabels, RouteLabels};
use crate::pages::{self, PageRequest, negotiate::prefers_html};
use crate::problem::{Problem, ProblemCode};
use crate::redirect::{SECURE_ONLY, ToTarget};
use crate::state::App;
use crate::vary::add_vary;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 128;
const UNMATCHED: &str = "unmatched";
/// The route that links are followed at.
const KEY_ROUTE: &str = "/{key}";

pub(crate) async fn observe(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let asked = AskedFor::new(&app, &mut request);
    let id = request_id(request.headers());
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or(UNMATCHED, MatchedPath::as_str)
        .to_owned();
    // What is logged below the handlers carries the id too.
    let request_id = id.to_str().unwrap_or_default();
    let span = tracing::error_span!("request", request_id, route, user = Empty);
    let mut response = answer(&app, request, next).instrument(span.clone()).await;

    let status = response.status().as_u16();
    span.in_scope(|| {
        tracing::debug!(
            event = event::REQUEST_ANSWERED,
            method = method_name(&method),
            path = &*asked.path,
            address = %asked.address,
            status,
            micros = micros(started.elapsed()),
            "request answered"
        );
    });
    if let Some(log) = &app.access_log
        && log.wants(status)
        && !(status < 400 && is_for_operators(&route))
    {
        log.record(asked.entry(&app, method_name(&method), status, started, &id));
    }
    response.headers_mut().insert(X_REQUEST_ID, id);
    if app.settings.is_secure() {
        let secure = HeaderValue::from_static(SECURE_ONLY);
        response
            .headers_mut()
            .insert(STRICT_TRANSPORT_SECURITY, secure);
    }
    count(&app, route, &method, status, started);
    response
}

/// What is logged of a request, taken from it before a handler has it.
struct AskedFor {
    path: Box<str>,
    address: IpAddr,
    user: KnownUser,
    agent: Box<str>,
    referrer: Box<str>,
}

impl AskedFor {
    fn new(app: &App, request: &mut Request) -> Self {
        let user = KnownUser::default();
        request.extensions_mut().insert(user.clone());
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let forwarded = request.headers();
        let text = |name: HeaderName| {
            let is_logged = app.access_log.is_some();
            let value = request.headers().get(name).filter(|_| is_logged);
            value.map_or_else(Box::default, |value| shortened(value.as_bytes()))
        };
        Self {
            path: shortened(request.uri().path().as_bytes()),
            address: address::of_headers(peer, forwarded, &app.settings.api.trusted_proxies),
            agent: text(USER_AGENT),
            referrer: text(REFERER),
            user,
        }
    }

    fn entry(
        self,
        app: &App,
        method: &'static str,
        status: u16,
        started: Instant,
        id: &HeaderValue,
    ) -> AccessEntry {
        AccessEntry {
            at: app.clock.now(),
            method,
            path: self.path,
            status,
            address: self.address,
            user: self.user.get(),
            elapsed: started.elapsed(),
            agent: self.agent,
            referrer: self.referrer,
            request_id: id.to_str().ok().map(Into::into),
        }
    }
}

/// Checks and scrapes come every second, and are no news while they succeed.
fn is_for_operators(route: &str) -> bool {
    route.starts_with("/health") || route == "/metrics"
}

fn micros(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

async fn answer(app: &App, mut request: Request, next: Next) -> Response {
    let cors = Cors::read(app, &mut request);
    let compression = Compression::read(app, request.headers());
    let (parts, body) = request.into_parts();
    let for_page = prefers_html(&parts.headers).then(|| PageRequest::of(app, &parts));
    let body = SharedBody::new(body);
    let request = Request::from_parts(parts, Body::new(body.clone()));
    let mut response = if uri_bytes(&request) > HTTP_URI_BYTES_MAX {
        Problem::new(ProblemCode::UriTooLong).into_response()
    } else if let Some(preflight) = cors.preflight() {
        preflight
    } else {
        let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
        answered.unwrap_or_else(|_| {
            tracing::error!(event = event::REQUEST_FAILED, "a handler panicked");
            Problem::new(ProblemCode::Internal).into_response()
        })
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        if problem.code() == ProblemCode::Overloaded {
            app.metrics.requests_shed.inc();
        }
        if let Some(asked) = &for_page {
            response = pages::problem_page(app, asked, &problem, response).await;
        }
        add_vary(response.headers_mut(), "accept");
    }
    let mut response = compression.apply(response).await;
    cors.finish(response.headers_mut());
    if response.extensions().get::<ToTarget>().is_none() {
        protect(response.headers_mut());
    }
    if !body.is_end_stream() && !body.drain().await {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

fn uri_bytes(request: &Request) -> usize {
    request
        .uri()
        .path_and_query()
        .map_or(0, |text| text.as_str().len())
}

/// The client's id if it is harmless in a log, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let harmless = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        let symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
        (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(symbol)
    };
    headers
        .get(X_REQUEST_ID)
        .filter(harmless)
        .cloned()
        .unwrap_or_else(|| {
            let id = format!("{:032x}", rand::random::<u128>());
            HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("none"))
        })
}

/// What an answer says unless its handler knew better.
fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

/// Methods that clients invent would make as many counters.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

fn count(app: &App, route: String, method: &Method, status: u16, started: Instant) {
    let labels = RequestLabels {
        route: route.clone(),
        method: method_name(method).to_owned(),
        status,
    };
    app.metrics.requests.get_or_create(&labels).inc();
    // Links that workers do not answer from their copies: private ones, those with limits.
    if route == KEY_ROUTE && (300..400).contains(&status) {
        app.metrics.redirect_seconds.observe(started.elapsed());
    }
    app.metrics
        .request_seconds
        .get_or_create(&RouteLabels { route })
        .observe(started.elapsed().as_secs_f64());
}
