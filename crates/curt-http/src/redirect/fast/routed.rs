//! A request on its way from a worker to the router and back. The socket stays with the worker.

use std::convert::Infallible;
use std::io::Write;

use axum::Router;
use axum::body::{Body, to_bytes};
use bytes::Bytes;
use curt_core::UnixMillis;
use curt_core::names::event;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{Request, Response};
use tokio::sync::oneshot;
use tower::ServiceExt;

use crate::redirect::{GetFrame, Persistence, finish, http_date};

/// Most bytes of a response that is built in memory. Pages and problem documents have a few thousand.
const BODY_BYTES_MAX: usize = 256 * 1_024;

#[derive(Debug)]
pub(crate) struct RoutedRequest {
    request: Request<Body>,
    reply: oneshot::Sender<Response<Bytes>>,
}

impl RoutedRequest {
    /// Returns the request and where its response arrives.
    pub(crate) fn new(request: Request<Body>) -> (Self, oneshot::Receiver<Response<Bytes>>) {
        let (reply, response) = oneshot::channel();
        (Self { request, reply }, response)
    }

    /// Has the router answer. Without a response the worker closes the connection.
    pub(crate) async fn serve(self, router: Router) {
        let response: Result<_, Infallible> = router.oneshot(self.request).await;
        let Ok(response) = response;
        let (parts, body) = response.into_parts();
        match to_bytes(body, BODY_BYTES_MAX).await {
            Ok(body) => {
                if self.reply.send(Response::from_parts(parts, body)).is_err() {
                    tracing::trace!("worker gone before response");
                }
            }
            Err(error) => {
                tracing::error!(event = event::REQUEST_FAILED, %error, "response body failed");
            }
        }
    }
}

/// Writes the response to the request of `frame`.
pub(crate) fn write_response(
    out: &mut Vec<u8>,
    response: &Response<Bytes>,
    frame: GetFrame,
    closes: bool,
    now: UnixMillis,
) {
    let date = http_date(now.0.div_euclid(1_000));
    let written = write!(out, "HTTP/1.1 {}\r\ndate: {date}", response.status());
    debug_assert!(written.is_ok(), "a Vec takes every byte");
    for (name, value) in response.headers() {
        // Whether the connection stays open is the worker's decision.
        if name != CONNECTION {
            write_field(out, name.as_str(), value.as_bytes());
        }
    }
    let body = response.body();
    if !response.headers().contains_key(CONTENT_LENGTH) {
        write_field(
            out,
            CONTENT_LENGTH.as_str(),
            body.len().to_string().as_bytes(),
        );
    }
    finish(
        out,
        if closes {
            Persistence::Close
        } else {
            frame.persistence
        },
    );
    if !frame.is_head {
        out.extend_from_slice(body);
    }
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [b"\r\n", name.as_bytes(), b": ", value] {
        out.extend_from_slice(part);
    }
}
